"""Who may call a server on loopback that asks for no credentials."""

import pytest
from stepwell.api.errors import PermissionDenied

from stepwell_server.frontend.guard import LoopbackGuard

GUARD = LoopbackGuard(7400)
HOST = (b"host", b"127.0.0.1:7400")


@pytest.mark.parametrize("host", [b"127.0.0.1:7400", b"localhost:7400", b"LOCALHOST:7400", b"[::1]:7400"])
def test_loopback_names_at_our_port_pass(host: bytes) -> None:
    assert GUARD.check([(b"host", host)]) is None


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example:7400",
        b"127.0.0.1",
        b"localhost",
        b"127.0.0.1:7401",
        b"127.0.0.1.evil.example:7400",
        b"localhost.:7400",
        b"",
        b"127.0.0.1:7400, evil.example",
    ],
)
def test_other_hosts_are_refused(host: bytes) -> None:
    refused = GUARD.check([(b"host", host)])
    assert isinstance(refused, PermissionDenied)
    assert "127.0.0.1:7400" in str(refused)


def test_a_request_without_host_is_refused() -> None:
    assert isinstance(GUARD.check([]), PermissionDenied)


def test_one_good_host_does_not_excuse_a_bad_one() -> None:
    assert GUARD.check([HOST, (b"host", b"evil.example")]) is not None


@pytest.mark.parametrize("origin", [b"http://127.0.0.1:7400", b"http://localhost:7400"])
def test_our_own_pages_pass(origin: bytes) -> None:
    assert GUARD.check([HOST, (b"origin", origin)]) is None


@pytest.mark.parametrize(
    "origin",
    [b"https://evil.example", b"null", b"http://127.0.0.1:8080", b"https://127.0.0.1:7400", b"http://127.0.0.1", b""],
)
def test_pages_of_others_are_refused(origin: bytes) -> None:
    assert isinstance(GUARD.check([HOST, (b"origin", origin)]), PermissionDenied)


def test_port_80_is_left_out_of_addresses() -> None:
    guard = LoopbackGuard(80)
    assert guard.check([(b"host", b"localhost"), (b"origin", b"http://localhost")]) is None
