"""Keeps web pages of other sites away from an engine that listens on loopback without credentials.

A page in the user's browser can reach 127.0.0.1. Two doors are closed: a name of the attacker's that resolves to
loopback (DNS rebinding) shows in ``Host``, and a request sent across sites shows in ``Origin``. Pages also cannot send
JSON across sites without asking first, and nobody answers such a question here.
"""

from typing import Protocol

from stepwell.api.errors import ApiError, PermissionDenied

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")

Headers = list[tuple[bytes, bytes]]


class Verifier(Protocol):
    """Knows from a signature who calls; see ``signatures``."""

    def check(self, method: str, raw_path: str, query: str, headers: Headers, body: bytes) -> ApiError | str:
        """The refusal of a request, or who has signed it when it may pass."""
        ...


class LoopbackGuard:
    """Allows requests to loopback names at our own port, from programs or from our own pages."""

    def __init__(self, port: int) -> None:
        hosts = [f"{name}:{port}" for name in LOOPBACK_NAMES]
        if port == 80:
            hosts += LOOPBACK_NAMES
        self._hosts = frozenset(host.encode() for host in hosts)
        self._origins = frozenset(b"http://" + host for host in self._hosts)
        self._expected = hosts[0]

    def check(self, headers: Headers) -> ApiError | None:
        """The refusal of a request with these headers (names in lower case), or None when it may pass."""
        host_seen = False
        for name, value in headers:
            if name == b"host":
                host_seen = True
                if value.lower() not in self._hosts:
                    return PermissionDenied(
                        f"Host {_shown(value)} is not this server; use http://{self._expected}", header="Host"
                    )
            elif name == b"origin" and value.lower() not in self._origins:
                return PermissionDenied(
                    f"requests from pages of {_shown(value)} are refused; only this server's own pages may call it",
                    header="Origin",
                )
        if not host_seen:
            return PermissionDenied(f"the Host header is missing; send Host: {self._expected}", header="Host")
        return None


def _shown(value: bytes) -> str:
    return repr(value[:200].decode("latin-1"))
