"""Addresses that ``Client.connect`` takes, and the transport that each one means."""

from urllib.parse import unquote, urlsplit

from . import Transport
from .in_process import MEMORY, open_embedded

_ACCEPTED = "use sqlite:///relative.db, sqlite:////absolute.db, sqlite://:memory: or http://host:port"


async def open_transport(url: str, *, sign: bool | None = None) -> Transport:
    """``sign`` as in ``Client.connect``. Raises ValueError when ``url`` is none of the accepted forms, TypeError when
    it is no text."""
    if not isinstance(url, str):
        raise TypeError(f"the address of an engine is text, not {type(url).__name__}: {_ACCEPTED}")
    if "\0" in url:
        raise ValueError(f"{url!r} holds a NUL character, which no file name or host can: {_ACCEPTED}")
    if url.startswith("sqlite://"):
        if sign:
            raise ValueError("sign is for servers; sqlite:// runs the engine in this process")
        return await open_embedded(sqlite_path(url))
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is not an address of an engine ({error}): {_ACCEPTED}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an address of an engine: {_ACCEPTED}")
    if parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r}: query, fragment and user name have no meaning here; {_ACCEPTED}")
    # Half of all that a worker imports is aiohttp; an engine in the same process needs none of it.
    from .http import HttpTransport, is_loopback
    from .queue_fed import QueueFedTransport
    from .signing import RequestSigner, is_aws
    from .sqs import SqsQueues

    if sign is None:
        sign = is_aws(parts.hostname)
    if sign and parts.scheme != "https" and not is_loopback(parts.hostname):
        raise ValueError(f"{url!r}: signed requests go over https, so that nobody reads what they carry")
    signer = RequestSigner(parts.hostname) if sign else None
    return QueueFedTransport(HttpTransport(url, signer=signer), SqsQueues())


def sqlite_path(url: str) -> str:
    """The file that a ``sqlite://`` address names; three slashes are relative to the working directory, four
    absolute."""
    rest = url.removeprefix("sqlite://")
    if rest in (MEMORY, f"/{MEMORY}"):
        return MEMORY
    if "?" in rest or "#" in rest:
        raise ValueError(f"{url!r}: options are not part of the address; write ? and # of a file name as %3F and %23")
    if not rest.startswith("/") or rest.rstrip("/") == "":
        raise ValueError(f"{url!r} names no file: {_ACCEPTED}")
    return unquote(rest[1:])
