"""The contract of ExecutionLog: markers."""

import asyncio
from datetime import timedelta

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import Marker
from tests.support.sample_commits import EPOCH, SampleRun

KEY = ExecutionKey("default", "order-1")
HOUR = timedelta(hours=1)


async def put(backend: Backend, value: bytes, key: ExecutionKey = KEY, name: str = "one", hour: int = 0) -> Marker:
    now = EPOCH + hour * HOUR
    return await backend.log.put_marker(key, name, value, expires_at=now + HOUR, now=now)


async def test_the_first_one_stays(backend: Backend) -> None:
    assert await backend.log.get_marker(KEY, "one") is None
    first = Marker(b"first", EPOCH + HOUR)
    assert await put(backend, b"first") == first
    assert await put(backend, b"second") == first
    assert await backend.log.get_marker(KEY, "one") == first


async def test_names_ids_and_namespaces_are_apart(backend: Backend) -> None:
    places = [(KEY, "One"), (ExecutionKey("default", "Order-1"), "one"), (ExecutionKey("other", "order-1"), "one")]
    places += [(KEY, "日本"), (KEY, "one")]
    for number, (key, name) in enumerate(places):
        assert (await put(backend, b"%d" % number, key, name)).value == b"%d" % number
    for number, (key, name) in enumerate(places):
        there = await backend.log.get_marker(key, name)
        assert there is not None and there.value == b"%d" % number


async def test_of_many_at_once_exactly_one_stays(backend: Backend) -> None:
    there = await asyncio.gather(*(put(backend, b"%d" % number) for number in range(600)))
    assert len(set(there)) == 1
    assert await backend.log.get_marker(KEY, "one") == there[0]


async def test_an_expired_one_is_replaced(backend: Backend) -> None:
    await put(backend, b"old")
    there = await backend.log.get_marker(KEY, "one")
    assert there is not None and there.expires_at == EPOCH + HOUR
    assert (await put(backend, b"new", hour=1)).value == b"new"
    assert (await put(backend, b"newer", hour=1)).value == b"new"


async def test_retention_deletes_what_has_expired(embedded: Backend) -> None:
    names = [str(number) for number in range(1_200)]
    await asyncio.gather(*(put(embedded, b"x", name=name) for name in names))
    await put(embedded, b"later", hour=5)
    await embedded.sweep(EPOCH + HOUR)
    assert await embedded.log.get_marker(KEY, "0") is not None
    await embedded.sweep(EPOCH + 2 * HOUR)
    assert [name for name in names if await embedded.log.get_marker(KEY, name) is not None] == []
    assert await embedded.log.get_marker(KEY, "one") is not None


async def test_one_outlives_the_run_and_the_log_that_it_was_made_for(embedded: Backend) -> None:
    run = SampleRun(1, workflow_id=KEY.workflow_id)
    for commit in run.commits():
        await embedded.log.append(commit)
    now = run.start_time + timedelta(days=1)
    await embedded.log.put_marker(KEY, "one", b"x", expires_at=now + timedelta(days=30), now=now)
    assert await embedded.sweep(now) == [KEY]
    assert await embedded.log.head(KEY) is None
    await embedded.log.append(next(SampleRun(2).commits()))
    assert await embedded.log.get_marker(ExecutionKey("default", SampleRun(2).workflow_id), "one") is None
    assert (await embedded.log.get_marker(KEY, "one")) is not None


async def test_a_put_stands_though_its_caller_was_cancelled(embedded: Backend) -> None:
    putting = asyncio.ensure_future(put(embedded, b"mine"))
    await asyncio.sleep(0)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert (await put(embedded, b"other")).value == b"mine"
