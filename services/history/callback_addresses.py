"""To which addresses an installation lets callbacks go (LC-10): none, unless its operator names them. Pure.

An address is a scheme, a host (or ``*``, or ``*.`` and a domain for all hosts in it) and a port, that of the scheme
where none is named. URLs are taken apart by one strict pattern, so that nothing can be read one way here and another
way by what sends them.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from stepwell.api.callbacks import Callback
from stepwell.api.errors import InvalidArgument

_HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])"
_URL = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?(?:[/?][!-~]*)?", re.ASCII | re.IGNORECASE
)
_ADDRESS = re.compile(
    rf"(?P<scheme>https?)://(?P<host>\*|(?:\*\.)?{_HOST})(?::(?P<port>[0-9]{{1,5}}))?/?", re.ASCII | re.IGNORECASE
)
_PORTS = {"http": 80, "https": 443}


class BadAddress(ValueError):
    """No address that callbacks may be let to."""


class Address(NamedTuple):
    scheme: str
    host: str
    port: int


def parse_addresses(texts: Sequence[str]) -> tuple[Address, ...]:
    """Raises BadAddress."""
    return tuple([_address(text.strip()) for text in texts if text.strip()])


def parse_url(url: str) -> Address | None:
    """None: it is no URL that a callback may have."""
    found = _URL.fullmatch(url)
    return None if found is None or "#" in url or "\\" in url else _of(found)


def is_allowed(url: str, addresses: Sequence[Address]) -> bool:
    asked = parse_url(url)
    return asked is not None and any(_covers(address, asked) for address in addresses)


def _covers(address: Address, asked: Address) -> bool:
    if (address.scheme, address.port) != (asked.scheme, asked.port):
        return False
    if address.host.startswith("*."):
        return asked.host.endswith(address.host[1:])
    return address.host in ("*", asked.host)


def _address(text: str) -> Address:
    found = _ADDRESS.fullmatch(text)
    made = None if found is None else _of(found)
    if made is None:
        raise BadAddress(
            f"{text!r} is no address of callbacks; say it as https://hooks.example.com, https://*.example.com or "
            "http://127.0.0.1:8080"
        )
    return made


def _of(found: re.Match[str]) -> Address | None:
    scheme = found["scheme"].lower()
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    return Address(scheme, found["host"].lower(), port) if 0 < port < 65_536 else None


def admit_callbacks(callbacks: Sequence[Callback], addresses: Sequence[Address]) -> None:
    """Raises InvalidArgument."""
    for index, callback in enumerate(callbacks):
        if not is_allowed(callback.url, addresses):
            raise InvalidArgument(
                f"completion_callbacks[{index}].url {callback.url[:100]!r} is not among the addresses that this "
                "installation lets callbacks to; use one that is, or have its operator add it (--callback-address, "
                "STEPWELL_CALLBACK_ADDRESSES)",
                field="completion_callbacks",
            )
