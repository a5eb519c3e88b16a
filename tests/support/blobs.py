"""Large payloads, and a store of blobs that counts and fails when it is told to."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from stepwell.api.events import WorkflowExecutionStarted
from stepwell.api.payloads import Payload

from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.common.blobs import BlobsPage
from stepwell_server.history.commit import Commit


def noise(size: int, seed: int = 0) -> Payload:
    """A payload that no compression makes smaller."""
    return Payload(metadata={"encoding": "binary/plain"}, data=random.Random(seed).randbytes(size))


def with_input(commit: Commit, *payloads: Payload) -> Commit:
    """A start with that input."""
    first, *rest = commit.events
    assert isinstance(first.attributes, WorkflowExecutionStarted)
    attributes = msgspec.structs.replace(first.attributes, input=payloads)
    return msgspec.structs.replace(commit, events=(msgspec.structs.replace(first, attributes=attributes), *rest))


def with_memo(commit: Commit, **memo: Payload) -> Commit:
    """A commit whose state has that memo."""
    return msgspec.structs.replace(commit, state=msgspec.structs.replace(commit.state, memo=memo))


class CountedBlobs:
    """Of all requests, by kind. ``behind_put`` is called behind each put, and may raise."""

    def __init__(self) -> None:
        self.inner = MemoryBlobs()
        self.counts: Counter[str] = Counter()
        self.behind_put: Callable[[], Awaitable[None]] | None = None

    async def put(self, key: str, data: bytes) -> None:
        self.counts["put"] += 1
        await self.inner.put(key, data)
        if self.behind_put is not None:
            await self.behind_put()

    async def get(self, key: str) -> bytes:
        self.counts["get"] += 1
        return await self.inner.get(key)

    async def delete(self, keys: Sequence[str]) -> None:
        self.counts["delete"] += 1
        await self.inner.delete(keys)

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        self.counts["list"] += 1
        return await self.inner.list(prefix, after, limit)

    async def keys(self, prefix: str = "p/") -> tuple[str, ...]:
        return (await self.inner.list(prefix)).keys
