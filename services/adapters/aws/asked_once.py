"""Work that all share who ask for the same while it is under way."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class AskedOnce(Generic[Key, Found]):
    """Belongs to one event loop. Who no longer waits takes nothing from the others."""

    def __init__(self) -> None:
        self._under_way: dict[Key, asyncio.Task[Found]] = {}

    async def ask(self, key: Key, work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
        """What the work finds, or raises, that was begun for the key."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(task)

    def _ended(self, key: Key, done: "asyncio.Task[Found]") -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # whoever waits for it has it; nobody may
