"""Eviction: coroutines go away, and what their ``finally`` blocks do has no effect."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell import workflow
from stepwell.replay.errors import Evicted

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)
REACHED: list[str] = []


class Marker:
    pass


MARKERS: list[weakref.ref[Marker]] = []


@workflow.defn
async def tidy() -> None:
    marker = Marker()
    MARKERS.append(weakref.ref(marker))

    async def side() -> None:
        try:
            await workflow.wait_condition(lambda: False)
        finally:
            workflow.logger.warning("side")
            await workflow.sleep(1)
            REACHED.append("after a wait")

    task = asyncio.create_task(side())
    try:
        await asyncio.gather(task, workflow.execute_activity("A", start_to_close_timeout=SHORT))
    finally:
        workflow.logger.warning("main")
        try:
            open("/should/not/be/opened")
        except Exception:
            REACHED.append("guard was catchable")
        workflow.start_activity("clean_up", start_to_close_timeout=SHORT)
        REACHED.append("after a command")
        del marker


def test_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    REACHED.clear()
    d = Driver(tidy)
    d.task()
    asks = len(d.run._runtime.asks)
    with caplog.at_level(logging.DEBUG):
        d.run.evict()
    assert not caplog.records
    assert REACHED == []
    assert len(d.run._runtime.asks) == asks
    del d
    gc.collect()
    assert MARKERS[-1]() is None, "evicted frames are released"


def test_evicting_a_run_that_has_not_begun_or_has_ended() -> None:
    @workflow.defn
    async def short() -> None: ...

    d = Driver(short)
    d.run.evict()
    d = Driver(short)
    d.task()
    d.run.evict()


def test_many_waits_in_finally_do_not_hold_it_up() -> None:
    @workflow.defn
    async def stubborn() -> None:
        for _ in range(10):
            try:
                await asyncio.sleep(10)
            except BaseException:
                continue

    d = Driver(stubborn)
    d.task()
    d.run.evict()


def test_sdk_calls_while_evicting_stop_the_code() -> None:
    seen: list[type[BaseException]] = []

    @workflow.defn
    async def asks() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            try:
                await workflow.sleep(5)
            except BaseException as error:
                seen.append(type(error))
                raise

    d = Driver(asks)
    d.task()
    d.run.evict()
    assert seen == [Evicted]


def test_async_generators_do_not_leak_into_the_outer_loop() -> None:
    async def numbers() -> AsyncIterator[int]:
        while True:
            await workflow.sleep(1)
            yield 1

    @workflow.defn
    async def iterates() -> None:
        async for _ in numbers():
            pass

    async def outer() -> None:
        d = Driver(iterates)
        d.task()
        assert asyncio.get_running_loop() is not d.run._runtime.loop
        d.run.evict()
        del d
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(outer())
