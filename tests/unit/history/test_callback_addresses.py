"""LC-10: where callbacks may go is what an operator has named, and no other reading of it."""

import pytest

from stepwell_server.history.callback_addresses import BadAddress, is_allowed, parse_addresses, parse_url

ADDRESSES = parse_addresses(
    ["https://hooks.example.com", "https://*.example.org", "http://127.0.0.1:8080", "https://[::1]:9/", ""]
)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com",
        "https://HOOKS.example.com/a/b?c=d%20e",
        "https://hooks.example.com:443/",
        "https://a.example.org/x",
        "https://a.b.example.org?x",
        "http://127.0.0.1:8080/",
        "https://[::1]:9/x",
    ],
)
def test_what_is_named_is_allowed(url: str) -> None:
    assert is_allowed(url, ADDRESSES)
    assert not is_allowed(url, ())


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "https://hooks.example.com:8443/",
        "https://example.org/",
        "https://evilexample.org/",
        "https://hooks.example.com.evil.net/",
        "https://hooks.example.com@evil.net/",
        "https://evil.net/https://hooks.example.com",
        "https://evil.net?hooks.example.com",
        "https://evil.net#.example.org",
        "https://evil.net\\.example.org/",
        "https://evil.net\\@hooks.example.com/",
        "https://hooks.example.com /",
        "https://hooks.example.com\n/",
        "https://hooks.example.com/a b",
        "https://höoks.example.com/",
        "https://hooks.example.com:99999/",
        "https://hooks.example.com:/",
        "http://127.1:8080/",
        "http://2130706433:8080/",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "//hooks.example.com",
        "",
    ],
)
def test_what_is_not_named_is_not(url: str) -> None:
    assert not is_allowed(url, ADDRESSES)


def test_any_host_of_a_scheme() -> None:
    everywhere = parse_addresses(["https://*"])
    assert is_allowed("https://a.net/", everywhere)
    assert not is_allowed("http://a.net/", everywhere) and not is_allowed("https://a.net:8443/", everywhere)


@pytest.mark.parametrize(
    "text", ["example.com", "ftp://a.net", "https://a.net/path", "https://a.*.net", "https://a b", "https://a.net:0"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(BadAddress, match="is no address of callbacks; say it as"):
        parse_addresses([text])


@pytest.mark.parametrize("url", ["https://u:p@a.net/", "https://a.net/#f", "https://a.net:0/", "https://-a.net/"])
def test_what_is_no_url(url: str) -> None:
    assert parse_url(url) is None
