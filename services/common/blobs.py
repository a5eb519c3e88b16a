"""Blobs: bytes that are too large for an item, under keys that say whose they are. A port, used by every service."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class BlobMissing(Exception):
    """There is no such blob. What refers to it cannot be read."""

    def __init__(self, key: str) -> None:
        super().__init__(f"blob {key!r} is not there")
        self.key = key


class BlobsPage(NamedTuple):
    keys: tuple[str, ...]
    after: str
    """To go on behind; empty when these were the last."""


class BlobStore(Protocol):
    """Keys are ASCII letters, digits and ``/._=-``, up to 900 bytes. Every write is durable when its call returns.
    Calls raise StoreUnavailable."""

    async def put(self, key: str, data: bytes) -> None:
        """Put-if-absent: what is there stays, since equal keys are equal contents."""
        ...

    async def get(self, key: str) -> bytes:
        """Raises BlobMissing."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Those that are not there are gone already."""
        ...

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        """Keys that begin with ``prefix``, in order, behind ``after``."""
        ...
