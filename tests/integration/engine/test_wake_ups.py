"""Wake-ups of control records on the embedded engine: fired by its sweeper, again until their handler returns."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.control import ControlRecord, ControlWakeUps, wake_up_id
from stepwell_server.common.settings import EngineSettings
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.history.commit import Awaited, ExecutionKey

SOON = timedelta(milliseconds=50)
FIRST = ControlRecord("counter", "default", "n/1", 1, b"")
KEY = ExecutionKey("default", wake_up_id("counter", "n/1"))


class Installation:
    """An engine on a file with a handler for wake-ups of counters. ``crash`` is a stop that waits for nobody."""

    def __init__(self, path: Path, handler: Any = None) -> None:
        self.backend = embedded_backend(path)
        self.engine = make_engine(self.backend, EngineSettings(stop_grace=timedelta(0)))
        self.woken: list[tuple[str, str, datetime]] = []
        if handler is not None:
            self.wake_ups.register("counter", handler)

    @property
    def wake_ups(self) -> ControlWakeUps:
        wake_ups = self.engine.wake_ups
        assert wake_ups is not None
        return wake_ups

    async def start(self) -> "Installation":
        await self.engine.start()
        return self

    async def stop(self) -> None:
        await self.engine.stop()
        await self.backend.close()

    async def armed(self) -> list[Any]:
        return await self.backend.timers.due(datetime.max.replace(tzinfo=self.backend.clock.now().tzinfo), 9)


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.02)


async def test_each_firing_arms_the_next_until_there_is_none(tmp_path: Path) -> None:
    async def count(namespace: str, id: str, due_at: datetime) -> None:
        control, clock = installation.backend.control, installation.backend.clock
        record = await control.get("counter", namespace, id)
        assert record is not None and due_at <= clock.now()
        if record.version < 4:
            await control.put(record._replace(version=record.version + 1), arm=clock.now() + SOON)

    installation = await Installation(tmp_path / "w.db", count).start()
    due = installation.backend.clock.now() + SOON
    await installation.backend.control.put(FIRST, arm=due)

    async def done() -> bool:
        record = await installation.backend.control.get("counter", "default", "n/1")
        return record is not None and record.version == 4 and not await installation.armed()

    await until(done)
    await installation.stop()


async def test_what_a_crash_cut_off_is_fired_again_by_the_next_process(tmp_path: Path) -> None:
    """Before the handler, inside of it, and behind its write but before it returned."""
    calls: list[str] = []

    async def never_ends(namespace: str, id: str, due_at: datetime) -> None:
        calls.append("cut off")
        known = await installation.backend.control.get(*FIRST[:3])
        assert known is not None
        await installation.backend.control.put(known._replace(version=known.version + 1))
        await asyncio.Event().wait()

    installation = Installation(tmp_path / "w.db", never_ends)
    await installation.backend.control.put(FIRST, arm=installation.backend.clock.now())
    await installation.stop()
    installation = await Installation(tmp_path / "w.db", never_ends).start()

    async def begun() -> bool:
        return bool(calls)

    await until(begun)
    await installation.stop()

    async def ends(namespace: str, id: str, due_at: datetime) -> None:
        calls.append("done")

    installation = await Installation(tmp_path / "w.db", ends).start()

    async def over() -> bool:
        return "done" in calls and not await installation.armed()

    await until(over)
    assert calls == ["cut off", "done"]
    await installation.stop()


async def test_what_fails_or_is_not_known_stays_armed(tmp_path: Path, caplog: Any) -> None:
    tries: list[int] = []

    async def fails_twice(namespace: str, id: str, due_at: datetime) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not now")

    installation = await Installation(tmp_path / "w.db").start()
    await installation.backend.control.put(FIRST, arm=installation.backend.clock.now())

    async def logged() -> bool:
        return "does not know what a wake-up of 'counter' ('n/1') is for" in caplog.text

    await until(logged)
    assert len(await installation.armed()) == 1
    installation.wake_ups.register("counter", fails_twice)

    async def over() -> bool:
        return len(tries) == 3 and not await installation.armed()

    await until(over)
    await installation.stop()


async def test_the_write_that_a_wake_up_awaits_decides(tmp_path: Path) -> None:
    called: list[str] = []

    async def handler(namespace: str, id: str, due_at: datetime) -> None:
        called.append(id)

    installation = Installation(tmp_path / "w.db", handler)
    control, now = installation.backend.control, installation.backend.clock.now()
    assert not await installation.engine.fire(KEY, now, Awaited(seq=1))
    first = await control.put(FIRST)
    assert await installation.engine.fire(KEY, now, Awaited(seq=1)) and called == ["n/1"]
    second = await control.put(first._replace(version=2))
    assert await installation.engine.fire(KEY, now, Awaited(seq=1))  # late, and of an earlier write
    await control.delete(second)
    assert not await installation.engine.fire(KEY, now, Awaited(seq=2)) and len(called) == 2
    assert await installation.engine.fire(KEY, now) and len(called) == 3  # armed by itself, for whatever is there
    await installation.stop()


async def test_while_the_write_is_not_there_what_is_there_is_woken(tmp_path: Path) -> None:
    """And the wake-up is not done. It may stand in the place of one for a write that is there."""
    called: list[str] = []

    async def handler(namespace: str, id: str, due_at: datetime) -> None:
        called.append(id)

    installation = Installation(tmp_path / "w.db", handler)
    control, now = installation.backend.control, installation.backend.clock.now()
    known = await control.put(FIRST)
    assert not await installation.engine.fire(KEY, now, Awaited(seq=2, run_id=known.incarnation)) and len(called) == 1
    await control.delete(known)
    there = await control.put(FIRST)
    assert not await installation.engine.fire(KEY, now, Awaited(seq=1, run_id=known.incarnation)) and len(called) == 2
    assert await installation.engine.fire(KEY, now, Awaited(seq=1, run_id=there.incarnation)) and len(called) == 3
    await installation.stop()


async def test_what_a_handler_arms_for_now_is_fired_now(tmp_path: Path) -> None:
    """Not when the sweeper would look again by itself, a second later each time."""

    async def count(namespace: str, id: str, due_at: datetime) -> None:
        control = installation.backend.control
        record = await control.get("counter", namespace, id)
        assert record is not None
        if record.version < 60:
            await control.put(record._replace(version=record.version + 1), arm=installation.backend.clock.now())

    installation = await Installation(tmp_path / "w.db", count).start()
    await installation.backend.control.put(FIRST, arm=installation.backend.clock.now())

    async def done() -> bool:
        record = await installation.backend.control.get("counter", "default", "n/1")
        return record is not None and record.version == 60

    await until(done)
    await installation.stop()
