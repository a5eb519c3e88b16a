"""Sequences of activities and timers: live, replayed without cache, and fused, always the same."""

import asyncio
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.commands import ScheduleActivityTask, StartTimer
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import START, Driver

SHORT = timedelta(seconds=10)


@activity.defn
async def double(n: int) -> int:
    return 2 * n


@workflow.defn
async def sequence(n: int) -> list[int]:
    return [await workflow.execute_activity(double, i, start_to_close_timeout=SHORT) for i in range(n)]


@workflow.defn
class Fan:
    @workflow.run
    async def run(self, n: int) -> list[int]:
        calls = (workflow.execute_activity(double, i, start_to_close_timeout=SHORT) for i in range(n))
        return list(await asyncio.gather(*calls))


@pytest.mark.parametrize("cache", [True, False])
def test_sequence_of_activities(cache: bool) -> None:
    d = Driver(sequence, 2, cache=cache)
    first = d.task().commands[0]
    assert isinstance(first, ScheduleActivityTask)
    assert (first.activity_id, first.activity_type, first.task_queue) == ("1", "double", "queue")
    d.history.activity_completed("1", 10)
    d.task()
    d.history.activity_completed("2", 20)
    d.task()
    assert d.value() == [10, 20]
    d.replay()


def test_fused_steps_replay_as_the_history_that_the_engine_makes_of_them() -> None:
    d = Driver(sequence, 3)
    d.task()
    for number in (1, 2, 3):
        d.step(str(number), number)
    assert d.value() == [1, 2, 3]
    assert d.run.closed
    assert d.replay().closed


def test_flags_and_names_are_recorded_with_the_first_task_only() -> None:
    d = Driver(sequence, 2)
    metadata = d.task().sdk_metadata
    assert metadata is not None
    assert (metadata.flags, metadata.sdk_name) == ((1,), "stepwell-python")
    assert d.step("1", 1).sdk_metadata is None


def test_fan_out_resolves_by_id_and_not_by_order() -> None:
    d = Driver(Fan, 3, cache=False)
    d.task()
    d.history.activity_completed("3", 30)
    d.history.activity_completed("1", 10)
    assert d.task().commands == ()
    d.history.activity_completed("2", 20)
    d.task()
    assert d.value() == [10, 20, 30]
    d.replay()


def test_a_failed_workflow_task_leaves_no_trace() -> None:
    d = Driver(sequence, 1)
    d.history.task_started()
    d.history.task_failed()
    d.task()
    d.history.activity_completed("1", 7)
    d.task()
    assert d.value() == [7]
    d.replay()


def test_a_step_with_several_ends_feeds_them_together() -> None:
    d = Driver(Fan, 2)
    d.task()
    d.history.activity_completed("1", 1)
    d.history.activity_completed("2", 2)
    d.task()
    assert d.value() == [1, 2]


@workflow.defn
async def sleeper(seconds: float) -> str:
    before = workflow.now()
    await workflow.sleep(seconds)
    return str(workflow.now() - before)


@pytest.mark.parametrize("seconds", [0, -1, -0.5])
def test_no_timer_for_zero_and_below(seconds: float) -> None:
    d = Driver(sleeper, seconds)
    assert d.task() and d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


@pytest.mark.parametrize("seconds", [0.0004, 0.4, 1.0, 0.0000001])
def test_a_short_timer_is_a_timer(seconds: float) -> None:
    d = Driver(sleeper, seconds, cache=False)
    command = d.task().commands[0]
    assert command == StartTimer(
        timer_id="1", start_to_fire_timeout=max(timedelta(seconds=seconds), timedelta(0, 0, 1))
    )
    d.history.pass_time(2)
    d.history.timer_fired()
    d.task()
    assert d.value() == "0:00:02"
    d.replay()


@workflow.defn
async def nap_then_double(seconds: float) -> int:
    await workflow.sleep(seconds)
    return await workflow.execute_activity(double, 1, start_to_close_timeout=SHORT)


def test_an_edit_between_zero_and_positive_sleep_is_one_clear_mismatch() -> None:
    @workflow.defn(name="nap_then_double")
    async def edited(seconds: float) -> int:
        await workflow.sleep(1 - seconds)
        return await workflow.execute_activity(double, 1, start_to_close_timeout=SHORT)

    d = Driver(nap_then_double, 0.0)
    d.task()
    with pytest.raises(WorkflowTaskError, match=r"event 5 recorded ActivityTaskScheduled .*asked for StartTimer"):
        d.replay(edited)
    d = Driver(nap_then_double, 1.0)
    d.task()
    with pytest.raises(WorkflowTaskError, match=r"event 5 recorded TimerStarted .*asked for ScheduleActivityTask"):
        d.replay(edited)


@workflow.defn
async def overtaken() -> str:
    """An activity that races a timer; the loser is cancelled."""
    handle = workflow.start_activity(double, 1, start_to_close_timeout=SHORT)
    try:
        async with asyncio.timeout(5):
            return f"result {await asyncio.shield(handle)}"
    except TimeoutError:
        handle.cancel()
        return "too late"


def test_a_timeout_block_that_is_left_in_time_cancels_its_timer() -> None:
    d = Driver(overtaken, cache=False)
    d.task()
    assert d.kinds() == ["ScheduleActivityTask", "StartTimer"]
    d.history.activity_completed("1", 2)
    d.task()
    assert d.kinds() == ["CancelTimer", "CompleteWorkflowExecution"]
    d.replay()


def test_a_timeout_block_that_expires() -> None:
    d = Driver(overtaken, cache=False)
    d.task()
    d.history.pass_time(5)
    d.history.timer_fired()
    d.task()
    assert d.kinds() == ["RequestCancelActivityTask", "CompleteWorkflowExecution"]
    assert d.value() == "too late"
    d.replay()


@workflow.defn
async def taken_back() -> str:
    workflow.start_activity(double, 1, start_to_close_timeout=SHORT).cancel()
    timer = asyncio.ensure_future(asyncio.sleep(5))
    await asyncio.sleep(0)
    timer.cancel()
    await asyncio.sleep(0)
    return "done"


def test_what_is_cancelled_before_it_was_sent_sends_nothing() -> None:
    d = Driver(taken_back)
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


def test_time_stands_still_within_a_task_and_never_runs_backwards() -> None:
    @workflow.defn
    async def clock() -> list[str]:
        seen = [workflow.now(), workflow.now()]
        await workflow.sleep(1)
        return [str(t) for t in [*seen, workflow.now()]]

    d = Driver(clock)
    d.task()
    d.history.pass_time(3)
    d.history.timer_fired()
    d.task()
    assert d.value() == [str(START), str(START), str(START + timedelta(seconds=3))]


def test_arguments_that_do_not_fit_fail_the_task_and_name_the_argument() -> None:
    d = Driver(sequence, "three")
    with pytest.raises(WorkflowTaskError, match=r"workflow 'sequence', argument 'n'.*Expected `int`, got `str`"):
        d.task()


def test_a_result_that_cannot_be_encoded_fails_the_task() -> None:
    @workflow.defn
    async def odd() -> object:
        return object()

    with pytest.raises(WorkflowTaskError, match=r"result of workflow 'odd': objects of type builtins.object"):
        Driver(odd).task()


def test_wrong_number_of_activity_arguments_fails_the_task() -> None:
    @workflow.defn
    async def wrong() -> None:
        await workflow.execute_activity(double, 1, 2, start_to_close_timeout=SHORT)  # type: ignore[call-overload]

    with pytest.raises(WorkflowTaskError, match=r"activity 'double' takes 1 argument \(n\), but 2 were given"):
        Driver(wrong).task()
