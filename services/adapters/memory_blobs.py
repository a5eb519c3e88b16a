"""BlobStore in memory, for engines whose store is in memory, and for tests of what uses blobs."""

from bisect import bisect_right
from collections.abc import Sequence

from ..common.blobs import BlobMissing, BlobsPage


class MemoryBlobs:
    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, key: str, data: bytes) -> None:
        self._blobs.setdefault(key, data)

    async def get(self, key: str) -> bytes:
        try:
            return self._blobs[key]
        except KeyError:
            raise BlobMissing(key) from None

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._blobs.pop(key, None)

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        known = sorted(key for key in self._blobs if key.startswith(prefix))
        first = bisect_right(known, after) if after else 0
        keys = tuple(known[first : first + limit])
        return BlobsPage(keys, keys[-1] if first + limit < len(known) else "")
