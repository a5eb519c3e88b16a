"""Scenes around deadlines and objects: in each, the one order of things in which a rule of the product counts."""

import asyncio
from datetime import datetime, timedelta
from random import Random

from stepwell.api import requests as r
from stepwell.api.errors import ApiError
from stepwell.api.payloads import Payload

from stepwell_server.common.control import ControlRecord
from stepwell_server.entrypoints.blob_collecting import collect_some
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.history.run_blobs import PayloadLost
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from tests.simulation.aws.clocks import APART
from tests.simulation.aws.stage import Machine, Stage
from tests.simulation.violation import Violation
from tests.support.engine import activity

LARGE = 20_000
"""Bytes of a payload that is an object."""

SOON = timedelta(seconds=2)


async def a_write_lands_behind_the_first_firing(stage: Stage) -> None:
    """The deadline of a start is due, the start is still on its way, and its process is dead."""
    await stage.sweeper("sweeper")
    writer = await stage.machine("writer")
    await _dies_with_the_start_on_its_way(stage, writer)
    await stage.ends("order-1", within=30.0)


async def a_write_lands_behind_the_first_delivery(stage: Stage) -> None:
    """The same where the delay queue brings deadlines."""
    await stage.fires_messages(await stage.machine("timers", function=True))
    writer = await stage.machine("writer", function=True)
    await _dies_with_the_start_on_its_way(stage, writer)
    await stage.ends("order-1", within=30.0)


async def _dies_with_the_start_on_its_way(stage: Stage, writer: Machine) -> None:
    with stage.holding(writer, "put_item", stage.cloud.names.exec_table) as write:
        writer.begin(writer.driver.start(workflow_run_timeout=SOON))
        await write.comes()
        writer.die()
        await asyncio.sleep(5.0)  # what lands later than that, the feed wakes
        write.arrive()


async def a_writer_stands_still_between_a_row_and_its_write(stage: Stage) -> None:
    """For longer than the sweeper waits for the write. Then it goes on, and tries again, since it knows of no answer;
    but the first try has landed, too late for the row."""
    await stage.sweeper("sweeper")
    writer = await stage.machine("writer")
    with stage.holding(writer, "put_item", stage.cloud.names.exec_table) as write:
        writer.begin(writer.driver.start(workflow_run_timeout=SOON))
        await write.comes()
        writer.process.stand_still()
        await asyncio.sleep(100.0)
        writer.process.go_on()
        await write.comes(times=2)
        write.arrive_first()
        await stage.until(lambda: bool(stage.model.heads), 5.0, "the start has not landed")
        write.arrive()
        await stage.ends("order-1", within=30.0)


async def a_server_stands_still_between_the_row_and_the_start_of_an_attempt(stage: Stage) -> None:
    """The same of an activity's item, of which no stream tells."""
    await stage.sweeper("sweeper")
    server = await stage.machine("server")
    with stage.holding(server, "put_item", f"{stage.cloud.names.exec_table} A#") as write:
        attempt = server.begin(_activity_begins(server, SOON))
        await write.comes()
        server.process.stand_still()
        await asyncio.sleep(100.0)
        server.process.go_on()
        await write.comes(times=2)
        write.arrive_first()
        await stage.until(lambda: bool(stage.model.items), 5.0, "the item has not landed")
        write.arrive()
        await attempt

    def has_timed_out() -> bool:
        return all(item.attempt > 1 for item in stage.model.items.values())

    await stage.until(has_timed_out, 30.0, "an attempt has not timed out")


async def a_record_lands_when_its_writer_has_given_up(stage: Stage) -> None:
    """A process stands still between the row of a wake-up and the record; what it then tries again has no answer, and
    only what it tried at first lands. No stream tells of records."""
    machine, _ = await stage.sweeper("sweeper")
    writer = await stage.machine("writer")
    woken: list[str] = []

    async def wake(namespace: str, id: str, due_at: datetime) -> None:
        woken.append(id)

    assert machine.engine.wake_ups is not None
    machine.engine.wake_ups.register("thing", wake)
    record = ControlRecord("thing", "default", "one", 1, b"")
    with stage.holding(writer, "put_item", stage.cloud.names.ctl_table) as write:
        put = writer.begin(writer.parts.backend.control.put(record, arm=stage.clock.now() + SOON))
        await write.comes()
        writer.process.stand_still()
        await asyncio.sleep(100.0)
        writer.process.go_on()
        await asyncio.wait([put])
        assert isinstance(put.exception(), StoreUnavailable)
        write.arrive_first()
        await stage.until(lambda: bool(woken), 30.0, "nobody was woken")


async def a_write_lands_minutes_behind_its_deadline(stage: Stage) -> None:
    """And its process is dead: what is left is that the stream tells of it."""
    await stage.feeds(await stage.machine("reader"))
    await stage.sweeper("sweeper")
    writer = await stage.machine("writer")
    with stage.holding(writer, "put_item", stage.cloud.names.exec_table) as write:
        writer.begin(writer.driver.start(workflow_run_timeout=SOON))
        await write.comes()
        writer.die()
        await asyncio.sleep(100.0)
        write.arrive()
        await stage.ends("order-1", within=30.0)


async def a_reader_of_the_stream_dies_before_it_has_handled(stage: Stage) -> None:
    """It has read of a start, and is about to write it into the list of runs."""
    first = await stage.machine("first")
    await stage.feeds(first)
    writer = await stage.machine("writer", function=True)
    with stage.holding(first, "put_item", stage.cloud.names.vis_table) as shows:
        await writer.do(writer.driver.start())
        await shows.comes()
        await asyncio.sleep(1.0)
        first.die()
    await stage.feeds(await stage.machine("second"))

    def is_listed() -> bool:
        return bool(stage.cloud.dynamodb.rows(stage.cloud.names.vis_table))

    await stage.until(is_listed, 120.0, "the run is in no list")


async def a_row_appears_behind_what_was_read(stage: Stage) -> None:
    """Its put is on its way for longer than it is ahead, and for less than after which a writer arms again."""
    await stage.sweeper("sweeper")
    writer = await stage.machine("writer")
    with stage.holding(writer, "put_item", stage.cloud.names.timer_table) as put:
        start = writer.begin(writer.driver.start(workflow_run_timeout=timedelta(seconds=1)))
        await put.comes()
        await asyncio.sleep(4.5)
        put.arrive()
        await start
    await stage.ends("order-1", within=30.0)


async def a_slow_clock_arms_minutes_behind_what_was_read(stage: Stage) -> None:
    """No look back but the long one sees the row, which is for a time that was over when it was armed."""
    await stage.sweeper("sweeper")
    writer = await stage.machine("writer", slow=APART)
    await asyncio.sleep(150.0)  # the holder looks no further back than to its beginning
    await writer.do(writer.driver.start(workflow_run_timeout=timedelta(seconds=1)))
    await stage.ends("order-1", within=90.0)


async def who_catches_up_dies_before_it_has_fired(stage: Stage) -> None:
    """For ten minutes there is no sweeper. The next one reads what has become due, and can fire nothing; so does its
    lease, with a cursor, go to a third one."""
    first, sweeper = await stage.sweeper("first")
    await first.do(sweeper.stop())
    writer = await stage.machine("writer")
    await writer.do(writer.driver.start(workflow_run_timeout=timedelta(seconds=60)))
    stage.jump(timedelta(minutes=10))
    second = await stage.machine("second")
    with stage.holding(second, "", stage.cloud.names.exec_table) as fires:
        await stage.sweeps(second, "second")
        await fires.comes()
        await asyncio.sleep(12.0)  # by then it has renewed its leases twice
        second.die()
    await stage.sweeper("third")
    await stage.ends("order-1", within=60.0)


async def a_tick_dies_before_it_has_sent(stage: Stage) -> None:
    """It has read what fires within two minutes, and dies while that is on its way to the delay queue."""
    await stage.fires_messages(await stage.machine("timers", function=True))
    writer = await stage.machine("writer", function=True)
    await writer.do(writer.driver.start(workflow_start_delay=timedelta(seconds=500)))
    await asyncio.sleep(400.0)
    first = await stage.machine("tick 1", function=True)
    with stage.holding(first, "", stage.cloud.names.timer_queue) as sends:
        first.begin(tick_of(first).run())
        await sends.comes()
        await asyncio.sleep(2.0)
        first.die()
    second = await stage.machine("tick 2", function=True)
    await second.do(tick_of(second).run())

    def has_begun() -> bool:
        return stage.model.heads[ExecutionKey("default", "order-1")].state.workflow_task is not None

    await stage.until(has_begun, 110.0, "the first workflow task was not scheduled")


async def a_container_arms_behind_the_last_sweeper(stage: Stage) -> None:
    """It had stood still, and goes on when nobody reads but ticks; what it arms it sends to no queue."""
    last, _ = await stage.sweeper("last")
    writer = await stage.machine("writer")
    last.die()
    await asyncio.sleep(30.0)
    tick = await stage.machine("tick", function=True)
    await tick.do(tick_of(tick).run())
    await writer.do(writer.driver.start(workflow_run_timeout=SOON))
    writer.die()
    await stage.fires_messages(await stage.machine("timers", function=True))
    await asyncio.sleep(30.0)
    await tick.do(tick_of(tick).run())
    await stage.ends("order-1", within=30.0)


def tick_of(machine: Machine) -> MinuteTick:
    parts = machine.parts
    return MinuteTick(parts.rows, parts.leases, parts.delays, parts.clock, parts.layouts)


async def a_collector_comes_between_an_object_and_its_write(stage: Stage) -> None:
    """A start whose input is an object that is put; all of the bucket is looked through; the start lands."""
    writer = await stage.machine("writer")
    collector = await stage.machine("collector")
    with stage.holding(writer, "put_item", stage.cloud.names.exec_table) as write:
        start = writer.begin(writer.driver.start(input=(large(1),)))
        await write.comes()
        if not stage.cloud.s3.objects:
            raise Violation("a write is under way, and the object that it refers to is not there")
        await collector.do(collect_some(collector.parts.backend, 60.0))
        write.arrive()
        await start


async def a_collector_comes_by_while_an_activity_goes_on_for_days(stage: Stage) -> None:
    """What its heartbeat said is in its item, and in no commit."""
    machine = await stage.machine("server")
    task = await _activity_begins(machine, timedelta(days=5))
    await machine.do(_heartbeat(machine, task, 2))
    stage.jump(timedelta(hours=28))
    await machine.do(collect_some(machine.parts.backend, 60.0))
    other = await stage.machine("another server")
    try:
        shown = await other.do(other.driver.describe())
    except (ApiError, PayloadLost) as error:
        raise Violation(f"what a heartbeat said is lost: {error}") from error
    assert [pending.heartbeat_details for pending in shown.pending_activities] == [(large(2),)]


async def two_processes_change_an_item_at_the_same_time(stage: Stage) -> None:
    """Both have read it; one of the puts is on its way until the other one has landed."""
    one, other = await stage.machine("one"), await stage.machine("other")
    task = await _activity_begins(one, timedelta(days=5))
    with stage.holding(one, "put_item", stage.cloud.names.exec_table) as put:
        first = one.begin(_heartbeat(one, task, 1))
        await put.comes()
        await other.do(_heartbeat(other, task, 2))
        put.arrive()
        await first


async def _activity_begins(machine: Machine, start_to_close: timedelta) -> r.ActivityTask:
    """Of a run that is started for it."""
    driver = machine.driver
    workflow_task = machine.begin(driver.take())
    await asyncio.sleep(1.0)
    await machine.do(driver.start())
    scheduled = activity("export", eager=False, seconds=start_to_close.total_seconds())
    activities = machine.begin(driver.poll_activities())
    await asyncio.sleep(1.0)
    await machine.do(driver.complete((await workflow_task).task_token, scheduled))
    (task,) = await activities
    return task


async def _heartbeat(machine: Machine, task: r.ActivityTask, number: int) -> None:
    request = r.RecordActivityHeartbeatRequest(task_token=task.task_token, details=(large(number),))
    await machine.engine.record_activity_heartbeat(request)


def large(number: int) -> Payload:
    """What cannot be compressed."""
    return Payload(metadata={"encoding": "binary/plain"}, data=Random(number).randbytes(LARGE))
