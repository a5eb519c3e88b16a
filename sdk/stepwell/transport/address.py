"""Addresses that ``Client.connect`` takes, and the transport that each one means."""

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from . import Transport
from .in_process import MEMORY, open_embedded
from .loopback import is_loopback
from .signing import is_aws

if TYPE_CHECKING:
    from .http import HttpTransport

SQLITE = "sqlite://"
_ACCEPTED = "use sqlite:///relative.db, sqlite:////absolute.db, sqlite://:memory: or http://host:port"


async def open_transport(url: str, *, sign: bool | None = None) -> Transport:
    """``sign`` as in ``Client.connect``. Raises ValueError when ``url`` is none of the accepted forms, TypeError when
    it is no text."""
    check_address(url, sign)
    if url.startswith(SQLITE):
        return await open_embedded(sqlite_path(url))
    from .queue_fed import QueueFedTransport
    from .sqs import SqsQueues

    return QueueFedTransport(http_transport(url, sign=sign), SqsQueues())


def http_transport(url: str, *, sign: bool | None = None, total_wait: float | None = None) -> "HttpTransport":
    """For one ``http`` address, which ``check_address`` takes. ``total_wait``: seconds over which a call is repeated
    while the engine is out of reach."""
    # Half of all that a worker imports is aiohttp; an engine in the same process needs none of it.
    from .http import TOTAL_WAIT, HttpTransport
    from .signing import RequestSigner

    host = urlsplit(url).hostname or ""
    signer = RequestSigner(host) if _signed(host, sign) else None
    return HttpTransport(url, signer=signer, total_wait=TOTAL_WAIT if total_wait is None else total_wait)


def check_address(url: str, sign: bool | None = None) -> None:
    """Raises what ``open_transport`` raises for the same two, and opens nothing. What an address may not have, such as
    a password, is not repeated."""
    if not isinstance(url, str):
        raise TypeError(f"the address of an engine is text, not {type(url).__name__}: {_ACCEPTED}")
    if "\0" in url:
        raise ValueError(f"{_shown(url)!r} holds a NUL character, which no file name or host can: {_ACCEPTED}")
    if url.startswith(SQLITE):
        if sign:
            raise ValueError("sign is for servers; sqlite:// runs the engine in this process")
        sqlite_path(url)
        return
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{_shown(url)!r} is not an address of an engine ({error}): {_ACCEPTED}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{_shown(url)!r} is not an address of an engine: {_ACCEPTED}")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError(f"{_shown(url)!r}: query, fragment and user name have no meaning here; {_ACCEPTED}")
    if _signed(parts.hostname, sign) and parts.scheme != "https" and not is_loopback(parts.hostname):
        raise ValueError(f"{url!r}: signed requests go over https, so that nobody reads what they carry")


def _signed(host: str, sign: bool | None) -> bool:
    return is_aws(host) if sign is None else sign


def _shown(url: str) -> str:
    """Without what may be a secret: user name, password, and the values of a query."""
    return re.sub(r"(?<==)[^&#]*", "…", re.sub(r"(?<=//)[^/]*@", "…@", url))


def sqlite_path(url: str) -> str:
    """The file that a ``sqlite://`` address names; three slashes are relative to the working directory, four
    absolute."""
    rest = url.removeprefix(SQLITE)
    if rest in (MEMORY, f"/{MEMORY}"):
        return MEMORY
    if "?" in rest or "#" in rest:
        raise ValueError(f"{url!r}: options are not part of the address; write ? and # of a file name as %3F and %23")
    if not rest.startswith("/") or rest.rstrip("/") == "":
        raise ValueError(f"{url!r} names no file: {_ACCEPTED}")
    return unquote(rest[1:])
