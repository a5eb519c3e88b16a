"""Addresses that ``Client.connect`` takes, and the transport that each one means."""

from urllib.parse import unquote, urlsplit

from . import Transport
from .in_process import MEMORY, open_embedded

_ACCEPTED = "use sqlite:///relative.db, sqlite:////absolute.db, sqlite://:memory: or http://host:port"


async def open_transport(url: str) -> Transport:
    """Raises ValueError when ``url`` is none of the accepted forms, TypeError when it is no text."""
    if not isinstance(url, str):
        raise TypeError(f"the address of an engine is text, not {type(url).__name__}: {_ACCEPTED}")
    if "\0" in url:
        raise ValueError(f"{url!r} holds a NUL character, which no file name or host can: {_ACCEPTED}")
    if url.startswith("sqlite://"):
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
    from .http import HttpTransport
    from .queue_fed import QueueFedTransport
    from .sqs import SqsQueues

    return QueueFedTransport(HttpTransport(url), SqsQueues())


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
