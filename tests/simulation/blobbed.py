"""The simulated store with nearly every payload as a blob, and nobody who remembers one: all is read back each time."""

from collections import Counter
from typing import Any

from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.common.clock import Clock
from stepwell_server.history.offload import OffloadingLog
from stepwell_server.history.run_blobs import RunBlobs
from stepwell_server.history.seen_payloads import SeenPayloads

TINY = 20
"""Bytes of a payload above which it is a blob; no engine may have it."""


class _CountedBlobs(MemoryBlobs):
    def __init__(self, seen: Counter[str]) -> None:
        super().__init__()
        self._counts = seen

    async def put(self, key: str, data: bytes) -> None:
        self._counts["blobs"] += 1
        await super().put(key, data)


class BlobbedStore(OffloadingLog):
    """The log with blobs, and the store's deadlines as they are."""

    def __init__(self, store: Any, clock: Clock, seen: Counter[str]) -> None:
        super().__init__(store, RunBlobs(_CountedBlobs(seen), clock), clock)
        self._threshold = TINY
        self._seen = SeenPayloads(0)
        self.due, self.next_fire, self.arm, self.fired = store.due, store.next_fire, store.arm, store.fired
