"""Two visibility stores behind the port of one, for moving from the first to the second while everything runs (VI-16).

Every write goes to both and is done when both have it, so that whoever calls again, as the feed does, makes good what
one of them missed. Reads are of the one that is chosen. Shadow reads ask the other one the same, for a share of the
calls, and count whether it says the same; what was different is read once more from both, since each store may lag
behind by the moment that its index takes. Pages go on where the other store's ended: a position is of the run, not of
the store.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol, TypeVar

from ..common import metric_names as names
from ..common.background import Background
from ..common.metrics import Metrics
from ..history.commit import Commit, ExecutionKey
from ..history.ports import VisibilityStore
from ..visibility.attributes import ValueType
from ..visibility.filters import Filter, Query
from ..visibility.pages import Counted, Page, Position

log = logging.getLogger(__name__)

MAX_SHADOWS = 4
"""Shadow reads under way at once in one process; a call beyond that has none."""

_DRAIN_SECONDS = 2.0
_NAMED = 3
"""Runs of a difference that the log names."""

Found = TypeVar("Found", Page, Counted)


class LocatingVisibility(VisibilityStore, Protocol):
    """A store that also tells where a run's newest commit is."""

    async def locate(self, key: ExecutionKey, run_id: str) -> int | None: ...


class SecondVisibility:
    """``shadow_percent``: 0 to 100 of a hundred reads ask both. ``waits``: shadow reads are over before the call is,
    for a process that may stand still between two calls; the caller then waits for the slower one."""

    def __init__(
        self,
        chosen: LocatingVisibility,
        other: LocatingVisibility,
        *,
        shadow_percent: int,
        waits: bool,
        metrics: Metrics,
    ) -> None:
        self._chosen = chosen
        self._other = other
        self._percent = shadow_percent
        self._waits = waits
        self._metrics = metrics
        self._background = Background()
        self._due = 0
        self._running = 0

    async def project(self, commit: Commit) -> None:
        await _both(self._chosen.project(commit), self._other.project(commit))

    async def remove(self, key: ExecutionKey, run_id: str, last: datetime) -> None:
        await _both(self._chosen.remove(key, run_id, last), self._other.remove(key, run_id, last))

    @property
    def ordered_by(self) -> frozenset[str]:
        return self._chosen.ordered_by

    async def search(self, namespace: str, query: Query, *, after: Position | None, limit: int) -> Page:
        order = None if query.order is None else query.order.attribute.name
        comparable = order is None or order in self._other.ordered_by
        return await self._read(
            lambda store: store.search(namespace, query, after=after, limit=limit), namespace, comparable
        )

    async def scan(self, namespace: str, filter_: Filter, *, after: Position | None, limit: int) -> Page:
        """Without a shadow: stores may scan in orders of their own."""
        return await self._chosen.scan(namespace, filter_, after=after, limit=limit)

    async def count(self, namespace: str, query: Query, *, after: Position | None) -> Counted:
        return await self._read(lambda store: store.count(namespace, query, after=after), namespace, True)

    async def attribute_types(self, namespace: str) -> Mapping[str, ValueType]:
        return await self._chosen.attribute_types(namespace)

    async def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        return await self._chosen.owing(after, limit)

    async def locate(self, key: ExecutionKey, run_id: str) -> int | None:
        """Of whichever store has the run: the one that is being filled does not have all of them."""
        seq = await self._chosen.locate(key, run_id)
        return seq if seq is not None else await self._other.locate(key, run_id)

    async def close(self) -> None:
        await self._background.drain(_DRAIN_SECONDS)

    async def _read(
        self, ask: Callable[[LocatingVisibility], Awaitable[Found]], namespace: str, comparable: bool
    ) -> Found:
        if not comparable or not self._is_due():
            return await ask(self._chosen)
        self._running += 1
        if not self._waits:
            found = await self._released_if_it_fails(ask)
            self._background.spawn(self._shadow(ask, namespace, found))
            return found
        other = asyncio.create_task(_or_none(ask(self._other)))
        try:
            found = await ask(self._chosen)
            shadow = await other
        except BaseException:
            other.cancel()
            self._running -= 1
            raise
        await self._shadow(ask, namespace, found, shadow)
        return found

    async def _released_if_it_fails(self, ask: Callable[[LocatingVisibility], Awaitable[Found]]) -> Found:
        try:
            return await ask(self._chosen)
        except BaseException:
            self._running -= 1
            raise

    def _is_due(self) -> bool:
        """Evenly spread over the calls, by counting."""
        self._due += self._percent
        if self._due < 100:
            return False
        self._due -= 100
        return self._running < MAX_SHADOWS

    async def _shadow(
        self,
        ask: Callable[[LocatingVisibility], Awaitable[Found]],
        namespace: str,
        found: Found,
        shadow: Found | None = None,
    ) -> None:
        try:
            other = shadow if shadow is not None else await ask(self._other)
            same = _same(found, other)
            if same is False:
                found, other = await asyncio.gather(ask(self._chosen), ask(self._other))
                same = _same(found, other)
            if same is False:
                log.warning("The visibility stores differ in namespace %r: %s", namespace, _difference(found, other))
            if same is not None:
                self._metrics.count(names.SHADOW_READS, outcome=names.EQUAL if same else names.DIFFERENT)
        except Exception as error:
            log.warning("A shadow read in namespace %r failed: %s: %s", namespace, type(error).__name__, error)
            self._metrics.count(names.SHADOW_READS, outcome=names.FAILED)
        finally:
            self._running -= 1


async def _both(first: Awaitable[None], second: Awaitable[None]) -> None:
    """To the end of both; then raises what either raised."""
    for outcome in await asyncio.gather(first, second, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def _or_none(asked: Awaitable[Found]) -> Found | None:
    """None of what failed: it is asked again, and what it raises then is counted."""
    try:
        return await asked
    except Exception:
        return None


def _same(found: Page | Counted, shadow: Page | Counted) -> bool | None:
    """Whether callers would see the same; None where that cannot be told, of counts that go on with another call. Who
    has looked at as much as it may has a short page: then what both have is compared."""
    if isinstance(found, Counted) or isinstance(shadow, Counted):
        assert isinstance(found, Counted) and isinstance(shadow, Counted)
        if found.reached is not None or shadow.reached is not None:
            return None
        return found.count == shadow.count and set(found.groups) == set(shadow.groups)
    here, there = ([(each.execution, each.status) for each in page.executions] for page in (found, shadow))
    if found.reached is None and shadow.reached is None:
        return here == there
    shorter = min(len(here), len(there))
    at_its_end = (found.reached is None and len(here) < len(there)) or (
        shadow.reached is None and len(there) < len(here)
    )
    return not at_its_end and here[:shorter] == there[:shorter]


def _difference(found: Page | Counted, shadow: Page | Counted) -> str:
    if isinstance(found, Counted) or isinstance(shadow, Counted):
        return f"counts of {getattr(found, 'count', None)} and {getattr(shadow, 'count', None)}"
    here, there = ({(each.execution.run_id, each.status.value) for each in page.executions} for page in (found, shadow))
    some = sorted(here ^ there)[:_NAMED]
    return f"pages of {len(here)} and {len(there)} runs, such as {some or 'in another order'}"
