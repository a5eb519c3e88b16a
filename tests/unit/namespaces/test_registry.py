"""The registry between its store and its cache: what others write is seen, a store that fails leaves what was known,
changes at once are all made."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.errors import FailedPrecondition, InvalidArgument, ResourceExhausted
from stepwell.api.limits import MAX_SEARCH_ATTRIBUTES

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.control import ControlConflict
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.namespaces.registry import REFRESH_SECONDS, Namespaces


class Clock(SystemClock):
    passed = 0.0

    def monotonic(self) -> float:
        return self.passed


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    backend = embedded_backend(":memory:")
    yield backend
    await backend.close()


def process(backend: Backend, clock: Clock | None = None, store: Any = None) -> Namespaces:
    return Namespaces(store or backend.control, clock or Clock(), backend.ids)


async def test_what_others_write_is_seen_when_it_is_read_again(backend: Backend) -> None:
    clock = Clock()
    one, other = process(backend), process(backend, clock)
    await other.load()
    told: list[int] = []
    other.on_change(lambda namespaces: told.append(len(namespaces.known)))
    await one.register(r.RegisterNamespaceRequest(namespace="shop", description="d"))
    assert one.get("shop").description == "d" and not other.is_registered("shop")
    clock.passed = REFRESH_SECONDS - 1
    await other.freshen()
    assert not other.is_registered("shop") and told == [0]
    clock.passed = REFRESH_SECONDS
    await other.freshen()
    assert other.get("shop") == one.get("shop") and told == [0, 1]


class Failing:
    """A store that fails ``left`` times before it does what it is asked."""

    def __init__(self, store: Any, error: Exception, left: int) -> None:
        self._store, self._error, self.left = store, error, left

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            if name != "get" and self.left:
                self.left -= 1
                raise self._error
            return await getattr(self._store, name)(*given, **named)

        return call


async def test_a_store_that_cannot_be_read_leaves_what_was_known(backend: Backend, caplog: Any) -> None:
    clock, store = Clock(), Failing(backend.control, StoreUnavailable("out of order"), 0)
    namespaces = process(backend, clock, store)
    await namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))
    store.left = 1
    await namespaces.freshen()
    assert namespaces.is_registered("shop") and "cannot be read" in caplog.text
    store.left = 1
    with pytest.raises(StoreUnavailable):
        await namespaces.load()


class Slow:
    """A store whose first list is held up between what it has read and its answer."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reading, self.goes_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list(self, *given: Any, **named: Any) -> Any:
        answer = await self._store.list(*given, **named)
        self.reading.set()
        await self.goes_on.wait()
        return answer


async def test_what_this_process_writes_while_it_reads_is_not_forgotten(backend: Backend) -> None:
    store = Slow(backend.control)
    namespaces = process(backend, store=store)
    loading = asyncio.create_task(namespaces.load())
    await store.reading.wait()
    await namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))
    store.goes_on.set()
    await loading
    assert namespaces.is_registered("shop")


async def test_changes_at_once_are_all_made(backend: Backend) -> None:
    namespaces = process(backend)
    await namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))
    for round in range(3):
        await asyncio.gather(
            *(process(backend).add_search_attributes("shop", {f"a{round}{number}": "Keyword"}) for number in range(5))
        )
    await namespaces.load()
    assert len(namespaces.get("shop").search_attributes) == 15


async def test_a_conflict_without_end_is_said_with_its_cause(backend: Backend) -> None:
    namespaces = process(backend, store=Failing(backend.control, ControlConflict(None), 99))
    with pytest.raises(ResourceExhausted, match="changed by others") as refused:
        await namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))
    assert refused.value.details == {"cause": "NAMESPACE_CHANGES_LIMIT", "scope": "NAMESPACE"}


async def test_attributes_of_a_namespace_that_is_only_used(backend: Backend) -> None:
    """They are kept; it counts as unregistered until somebody registers it, who finds them."""
    namespaces = process(backend)
    await namespaces.add_search_attributes("used", {"Customer": "Keyword"})
    assert not namespaces.is_registered("used")
    with pytest.raises(InvalidArgument, match="has the type Keyword, not Int"):
        await namespaces.add_search_attributes("used", {"Customer": "Int"})
    known = namespaces.get("used")
    assert await namespaces.add_search_attributes("used", {"Customer": "Keyword"}) is known
    await namespaces.register(r.RegisterNamespaceRequest(namespace="used", search_attributes={"Total": "Int"}))
    assert namespaces.is_registered("used") and namespaces.get("used").id == known.id
    assert namespaces.get("used").search_attributes == {"Customer": "Keyword", "Total": "Int"}


async def test_there_are_so_many_attributes_and_no_more(backend: Backend) -> None:
    namespaces = process(backend)
    for number in range(MAX_SEARCH_ATTRIBUTES):
        await namespaces.add_search_attributes("shop", {f"a{number}": "Int"})
    with pytest.raises(InvalidArgument, match="would have 101 search attributes, above the limit of 100"):
        await namespaces.add_search_attributes("shop", {"one more": "Int"})


async def test_an_engine_without_a_store_has_no_registry(backend: Backend) -> None:
    namespaces = Namespaces(None, Clock(), backend.ids)
    await namespaces.load()
    assert [info.name for info in await namespaces.list("", 10)] == ["default"]
    with pytest.raises(FailedPrecondition, match="keeps no registry"):
        await namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))
