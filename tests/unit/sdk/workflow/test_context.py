"""Time, randomness and identity: the same in every replay (PM-09, PM-10, PM-11)."""

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow

from tests.support.histories import START, Driver


async def test_sleep_outside_of_workflow_code_is_refused_like_the_others() -> None:
    with pytest.raises(workflow.NotInWorkflowError, match="not in workflow code"):
        await workflow.sleep(0)


@workflow.defn
class Draws:
    """Keeps what it drew, so that a replayed instance can be compared."""

    @workflow.query
    def drawn(self) -> list[Any]:
        return self.values

    @workflow.run
    async def run(self) -> None:
        self.values: list[Any] = []
        for _ in range(2):
            self.values += [
                workflow.random().random(),
                workflow.new_random().randint(0, 10**9),
                str(workflow.uuid4()),
                str(workflow.uuid7()),
                workflow.time(),
                workflow.time_ns(),
            ]
            await workflow.sleep(1)


def test_the_same_in_replay_and_different_in_another_run() -> None:
    d = Driver(Draws)
    d.task()
    d.history.pass_time(1.5)
    d.history.timer_fired()
    d.task()
    live = d.run.query("drawn")
    assert d.replay().query("drawn") == live
    other = Driver(Draws)
    other.history = type(other.history)("Draws", run_id="run-2")
    other.run = other.new_run()
    other.task()
    assert other.run.query("drawn")[0].data[:20] != live[0].data[:20]


@workflow.defn
class Reseeded:
    """Draws once per signal, from what it got before the reset."""

    def __init__(self) -> None:
        self.more = 0
        self.drawn: list[Any] = []
        self.told: list[int] = []

    @workflow.signal
    def draw(self) -> None:
        self.more += 1

    @workflow.query
    def known(self) -> list[Any]:
        return [self.drawn, self.told, workflow.random_seed()]

    @workflow.run
    async def run(self) -> None:
        workflow.register_random_seed_callback(self.told.append)
        source, first, second = workflow.random(), workflow.new_random(), workflow.new_random()
        while True:
            await workflow.wait_condition(lambda: self.more > 0)
            self.more -= 1
            self.drawn.append([source.random(), first.random(), second.random(), str(workflow.uuid4())])


@pytest.mark.parametrize("cache", [True, False])
def test_a_reset_gives_every_source_another_seed(cache: bool) -> None:
    def drawn(new_run_id: str) -> list[Any]:
        d = Driver(Reseeded, cache=cache)
        d.task()
        d.history.signal("draw")
        d.task()
        d.run.evict()  # the new run has no cache
        d.history.task_started()
        d.history.task_failed(new_run_id)
        d.run = d.new_run()
        for _ in range(2):
            d.history.signal("draw")
            d.task()
        values: list[Any] = json.loads(d.run.query("known")[0].data)
        assert json.loads(d.replay().query("known")[0].data) == values
        return values

    one, two, plain = drawn("run-2"), drawn("run-3"), drawn("")
    assert one[0][0] == two[0][0] == plain[0][0]
    later = [value for values in (one, two, plain) for row in values[0][1:] for value in row]
    assert len(set(later)) == len(later) == 3 * 2 * 4
    assert one[1] == [one[2]] and two[1] == [two[2]] and plain[1] == []
    assert len({one[2], two[2], plain[2]}) == 3


def test_forms() -> None:
    @workflow.defn
    async def forms() -> list[Any]:
        four, seven = workflow.uuid4(), workflow.uuid7()
        assert (four.version, seven.version) == (4, 7)
        assert seven.int >> 80 == workflow.time_ns() // 1_000_000
        assert workflow.time() == START.timestamp()
        assert workflow.now() == START
        return [workflow.time_ns()]

    d = Driver(forms)
    d.task()
    assert d.value() == [int(START.timestamp()) * 10**9]


def test_info() -> None:
    @workflow.defn
    async def tells() -> list[Any]:
        info = workflow.info()
        first = [info.workflow_id, info.run_id, info.workflow_type, info.task_queue, info.namespace, info.attempt]
        lengths = [info.get_current_history_length()]
        await workflow.sleep(1)
        return [*first, *lengths, workflow.info().get_current_history_length(), info.task_timeout.total_seconds()]

    d = Driver(tells)
    d.task()
    d.history.timer_fired()
    d.task()
    assert d.value() == ["wf-1", "run-1", "tells", "queue", "default", 1, 3, 8, 10.0]
    d.replay()


def test_the_logger_is_silent_in_replay(caplog: pytest.LogCaptureFixture) -> None:
    @workflow.defn
    async def logs() -> None:
        workflow.logger.info("at %s", "start")
        assert workflow.logger.isEnabledFor(logging.INFO) is not workflow.unsafe.is_replaying()

    d = Driver(logs)
    with caplog.at_level(logging.INFO):
        d.task()
        d.replay()
    assert len(caplog.records) == 1
    record: Any = caplog.records[0]
    assert record.getMessage().startswith("at start ({'workflow_id': 'wf-1'")
    assert record.stepwell_workflow["run_id"] == "run-1"
    workflow.logger.info("works outside of workflows as well")


def test_history_length_of_a_fused_step_is_that_of_its_history() -> None:
    @workflow.defn
    async def steps() -> list[int]:
        seen = []
        for _ in range(2):
            await workflow.execute_activity("A", start_to_close_timeout=timedelta(seconds=1))
            seen.append(workflow.info().get_current_history_length())
        return seen

    d = Driver(steps)
    d.task()
    d.step("1", None)
    d.step("2", None)
    live = d.value()
    replayed = d.new_run()
    result = replayed.run_task(d.history.events)
    assert result.commands == () and live == [9, 15]
