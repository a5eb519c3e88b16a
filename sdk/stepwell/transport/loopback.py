"""Whether a host is this machine, apart from the HTTP client, which is much to import."""

import ipaddress


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
