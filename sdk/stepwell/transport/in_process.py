"""The engine inside this process, for ``sqlite://`` addresses: records are handed over without HTTP in between.

The engine comes with the distribution ``stepwell-server``, found through the entry-point group
``stepwell.embedded``; this package never names server code. What is loaded gives each caller a transport; those of
one file share an engine.
"""

from importlib.metadata import entry_points

from . import Transport

ENTRY_POINT_GROUP = "stepwell.embedded"
ENTRY_POINT = "sqlite"
MEMORY = ":memory:"


async def open_embedded(path: str) -> Transport:
    """Open the SQLite file at ``path`` (or ``:memory:``, which every caller gets for itself).

    Raises ``RuntimeError`` when the engine is not installed, and ``ApiError`` when the file is not ours, or another
    process owns it.
    """
    found = list(entry_points(group=ENTRY_POINT_GROUP, name=ENTRY_POINT))
    if not found:
        raise RuntimeError(
            "sqlite:// addresses run the engine inside this process, and it is not installed; "
            "install stepwell-server, or connect to a server by http://"
        )
    transport: Transport = await found[0].load()(path)
    return transport
