"""Which address means what."""

import pytest
from stepwell.transport.address import open_transport, sqlite_path
from stepwell.transport.http import HttpTransport
from stepwell.transport.queue_fed import QueueFedTransport


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///orders.db", "orders.db"),
        ("sqlite:///data/orders.db", "data/orders.db"),
        ("sqlite:////var/lib/orders.db", "/var/lib/orders.db"),
        ("sqlite://:memory:", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite:///a%3Fb%20c.db", "a?b c.db"),
    ],
)
def test_sqlite_paths(url: str, path: str) -> None:
    assert sqlite_path(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://orders.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///a.db?mode=ro",
        "localhost:7400",
        "http://",
        "ftp://host",
        "http://host/?a=1",
        "http://me@host",
        "",
    ],
)
async def test_other_addresses_are_refused_with_the_accepted_forms(url: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite|http"):
        await open_transport(url)


async def test_http() -> None:
    transport = await open_transport("http://127.0.0.1:7400")
    assert isinstance(transport, QueueFedTransport) and isinstance(transport._inner, HttpTransport)
    await transport.close()


@pytest.mark.parametrize(
    "url", ["https://me:hush@host", "https://:hush@host", "https://h/?token=hush", "ftp://a:hush@b"]
)
async def test_what_may_be_a_secret_is_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="http://host:port") as refused:
        await open_transport(url)
    assert "hush" not in str(refused.value)
