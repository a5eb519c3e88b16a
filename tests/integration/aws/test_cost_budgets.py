"""What operations cost, counted on real requests by item size (design section 12): a test for each row of its table."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.worker import Worker

from benchmarks import cost_model
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.meter import Counted
from tests.support.aws.metered import MeteredCell, metered_tick
from tests.support.aws.metered_runs import PAYLOAD_BYTES
from tests.support.aws.metered_table import FAN_OUTS, PLACES, operations, runs, warmed

pytestmark = pytest.mark.timeout(600)
"""The table of a place is counted once, in the first test's time."""

Table = dict[str, Counted]


@pytest.fixture(scope="module", params=list(PLACES))
def place(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def table(place: str, provisioning: Provisioning) -> Iterator[Table]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in provisioning.environment.items():
            patch.setenv(name, value)
        yield asyncio.run(operations(provisioning.cell, place))


def requests(cost: Counted) -> int:
    return sum(cost.api.values())


def test_start(table: Table) -> None:
    """Budget: 1 commit + 1 timer item, 1 strong read, 3 units, 1 request."""
    cost = table["start"]
    assert cost.calls == {"exec put_item": 1, "exec query": 1, "timer put_item": 1}
    assert (cost.write_units, cost.read_units, requests(cost)) == (2, 1, 1)


def test_fused_step(table: Table, place: str) -> None:
    """Budget: 1 commit, 2 to 3 units, 1 request. What a process has in memory it does not read."""
    cost = table["fused step"]
    assert cost.calls == {"exec put_item": 1} | {"functions": {"exec query": 1}, "container": {}}[place]
    assert (cost.write_units, requests(cost), sum(cost.sqs.values())) == (1, 1, 0)


def test_eager_step(table: Table) -> None:
    """No budget of its own; the result and the completion are a commit each."""
    cost = table["eager step"]
    assert cost.calls["exec put_item"] == cost.write_units == 2
    assert requests(cost) == 3


def test_queued_step(table: Table, place: str) -> None:
    """Budget: 1 lease + 1 result + at most 2 commits, 8 units; 2 (receive + start), 2 completions, 2 deletes."""
    cost = table["queued step"]
    assert cost.calls["exec put_item"] == cost.write_units == 4
    assert cost.read_units == {"functions": 8, "container": 7}[place]
    assert requests(cost) == 4
    assert cost.sqs == {"functions": dict.fromkeys(_MESSAGE, 2), "container": {}}[place]


_MESSAGE = ("send_message_batch", "receive_message", "delete_message_batch")


def test_signal(table: Table, place: str) -> None:
    """Budget: 1 commit, and 1 for the task it causes; 2 + 2 units."""
    cost, task = table["signal"], table["task of a signal"]
    # A function that believes in an older state loses one write, which is billed.
    assert cost.lost_writes == {"functions": 1, "container": 0}[place]
    assert cost.calls["exec put_item"] - cost.lost_writes == 1
    assert cost.write_units <= 2
    assert task.calls["exec put_item"] == task.write_units == 1


def test_timer(table: Table) -> None:
    """Budget: at most 1 arm + 1 commit for the firing + 1 for the completion that follows, 6 units. The first of the
    two arms and firings counted here is the start's, whose deadline arms the timer's."""
    cost = table["timer"]
    assert (cost.calls["exec put_item"], cost.calls["timer put_item"]) == (4, 2)
    assert cost.write_units == 6


def test_local_activity(table: Table) -> None:
    """Budget: nothing of its own. It is a marker in the commit of its workflow task."""
    cost = table["local activity"]
    assert (cost.calls, cost.writes, cost.api) == ({}, {}, {})
    assert 0 < cost.stored["exec put_item"] < PAYLOAD_BYTES * 2


def test_fan_out(table: Table) -> None:
    """Budget: at most 2 writes an activity and O(batches) commits. Linear, so a thousand cost as much each."""
    small, large = (table[f"fan-out of {size}"] for size in FAN_OUTS)
    more = FAN_OUTS[1] - FAN_OUTS[0]
    puts = large.calls["exec put_item"] - small.calls["exec put_item"]
    assert puts == 2 * more
    for size in FAN_OUTS:
        assert table[f"fan-out of {size}"].calls["exec put_item"] == 2 * size + 4
    reads = [(table[f"fan-out of {size}"].read_units - 20) / size for size in FAN_OUTS]
    assert max(reads) < 8.5


def test_the_60th_step_costs_what_the_first_did(table: Table) -> None:
    """But for numbers that are longer: the first needs little less than one unit, the 60th a little more."""
    first, last = table["fused step"], table["late fused step"]
    assert (last.calls, last.reads, last.api, last.sqs) == (first.calls, first.reads, first.api, first.sqs)
    assert last.write_units <= 2
    assert last.stored["exec put_item"] < 1.2 * first.stored["exec put_item"]


def test_the_counts_of_the_page_are_those_of_today(
    place: str, table: Table, provisioning: Provisioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``docs/cost.md`` is made of them: after a deliberate change run ``python benchmarks/cost.py --count``."""
    for name, value in provisioning.environment.items():
        monkeypatch.setenv(name, value)
    written = cost_model.counted()[place]
    today = table | asyncio.run(runs(provisioning.cell(), place, (1, 3)))
    for name, cost in today.items():
        noted = written[name]
        for what in ("writes", "reads", "api", "sqs"):
            now = getattr(cost, what)
            expected: Any = {key: noted[what][key] for key in noted[what] if not _varies(name, key)}
            if name.startswith("fan-out") and what == "reads":
                expected = pytest.approx(expected, rel=0.1)  # looks behind the log fall together when time is short
            assert {key: now[key] for key in now if not _varies(name, key)} == expected, f"{name}: {what}"
        assert cost.stored == pytest.approx(noted["stored"], rel=0.1, abs=60), name


def _varies(name: str, key: str) -> bool:
    """With when the feed happens to come, how much the pump of a container takes at once, and the length of ids."""
    return (
        name.startswith("late")
        or key.startswith("vis")
        or (name.startswith(("fan-out", "start")) and not key.startswith("exec"))
    )


async def test_an_idle_minute_of_functions(cell: Cell) -> None:
    """Budget: $2 a month for all; here the tick's part: at most 31 units read and 4 written. With a new hour come the
    timers that are far ahead: each of their partitions is read and its cursor moved."""
    async with metered_tick(cell) as (meter, tick):
        await tick()
        meter.reset()
        await tick()
        cost = meter.now()
        meter.reset()
        await tick()
        hourly = meter.now()
    assert cost.read_units <= cost_model.TICK_READS and cost.write_units <= cost_model.TICK_WRITES
    assert hourly.read_units <= cost_model.TICK_READS + cost_model.HOUR_UNITS
    assert hourly.write_units == cost_model.TICK_WRITES + cost_model.HOUR_UNITS
    assert cost.sqs == hourly.sqs == {}


@activity.defn
async def charge(text: str) -> str:
    return text[::-1]


@workflow.defn
class Charging:
    @workflow.run
    async def run(self, text: str) -> str:
        for _ in range(3):
            text = await workflow.execute_activity(charge, text, start_to_close_timeout=timedelta(seconds=60))
        return text


async def test_the_sdk_makes_the_requests_that_are_counted(cell: Cell) -> None:
    """Three activities by the real worker: as many commits of as many units as the counted run of three."""
    text = "".join(chr(ord("a") + index * 7 % 26) for index in range(PAYLOAD_BYTES - 2))
    wanted = cost_model.counted()["container"]["fused 3"]
    async with warmed(cell, "container") as metered:
        client = Client(metered.transport)
        async with Worker(client, task_queue="sdk", workflows=[Charging], activities=[charge]):
            for number in range(5):  # a worker that is held up for 0.1 s does not fuse
                cost = await _run_once(metered, client, f"sdk-{number}", text)
                if cost.calls["exec put_item"] <= wanted["calls"]["exec put_item"]:
                    break
    assert cost.calls["exec put_item"] == wanted["calls"]["exec put_item"] == 5
    assert cost.writes["exec put_item"] == wanted["writes"]["exec put_item"] == 5


async def _run_once(metered: MeteredCell, client: Client, workflow_id: str, text: str) -> Counted:
    with metered.measured() as cost:
        handle = await client.start_workflow(Charging.run, text, id=workflow_id, task_queue="sdk")
        await handle.result()
    return cost()
