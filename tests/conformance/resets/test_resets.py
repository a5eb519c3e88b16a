"""LC-13 to LC-16, PM-10, GW-15: a reset goes back to a workflow task, which is done anew, and on from there."""

from datetime import timedelta

from stepwell.client import WorkflowExecutionStatus, WorkflowHandle
from stepwell.common import ResetReapplyExcludeType, ResetType, RetryPolicy

from tests.conformance.resets.workflow import CHARGES, Dice, Order, charge, second_time_lucky, turns
from tests.support.cases import until
from tests.support.conformance import Feature


async def task_ends(handle: WorkflowHandle[object]) -> list[int]:
    history = await handle.fetch_history()
    return [event.event_id for event in history.events if event.event_type == "WorkflowTaskCompleted"]


async def settled(order: WorkflowHandle[object]) -> None:
    """It has done all that it can do without another message."""

    async def waits() -> bool:
        known = await order.describe()
        return known.pending_workflow_task is None and not (known.pending_activities or known.pending_timers)

    await until(waits)


async def test_the_task_is_done_anew_and_what_was_before_it_is_not(feature: Feature) -> None:
    """The point is exclusive: its task is the first thing that happens in the new run."""
    order = await feature.start(Order.run, 7)
    await order.signal(Order.note, "a")
    await order.signal(Order.end)
    async with feature.worker([Order], [charge]):
        assert await order.result() == ["a", "140"]
        assert CHARGES[order.id] == 2
        ends = await task_ends(order)
        again = await order.reset(event_id=ends[-2], reason="charged wrongly")
        await feature.follow(again, "again")
        assert await again.result() == ["a", "140"]
        assert CHARGES[order.id] == 3 and again.result_run_id != order.result_run_id
        assert again.first_execution_run_id == order.result_run_id
        assert await order.result() == ["a", "140"]  # the first run ended before


async def test_an_open_run_is_ended_and_who_waits_for_its_result_gets_the_new_ones(feature: Feature) -> None:
    order = await feature.start(Order.run, 7)
    await order.signal(Order.note, "a")
    async with feature.worker([Order], [charge]):
        await settled(order)
        await order.signal(Order.note, "b")
        await order.reset(reset_type=ResetType.FIRST_WORKFLOW_TASK)
        await order.signal(Order.note, "c")
        await order.signal(Order.end)
        assert await order.result() == ["a", "b", "c", "140"]
        description = await feature.run(order).describe()
        assert description.status is not None and description.status.name == "TERMINATED"


async def test_messages_that_are_excluded_do_not_come_in_again(feature: Feature) -> None:
    order = await feature.start(Order.run, 7)
    await order.signal(Order.note, "a")
    async with feature.worker([Order], [charge]):
        await settled(order)
        await order.cancel(reason="by mistake")
        assert (await order.result())[-1] == "cancelled"
        again = await order.reset(
            reset_type=ResetType.FIRST_WORKFLOW_TASK,
            exclude=[ResetReapplyExcludeType.SIGNAL, ResetReapplyExcludeType.CANCEL_REQUEST],
        )
        await feature.follow(again, "again")
        await again.signal(Order.note, "b")
        await again.signal(Order.end)
        assert await again.result() == ["a", "b", "140"]  # the one before the point stays


async def test_a_signal_behind_the_reset_is_handled_first(feature: Feature) -> None:
    """LC-18: it is there when the workflow's code begins again, behind what comes in again."""
    order = await feature.start(Order.run, 7)
    await order.signal(Order.note, "a")
    async with feature.worker([Order], [charge]):
        await settled(order)
        await order.signal(Order.note, "b")
        again = await order.reset(reset_type=ResetType.FIRST_WORKFLOW_TASK, signals=[(Order.note, ["c"]), ("end", [])])
        assert await again.result() == ["a", "b", "c", "140"]


async def test_the_same_request_makes_one_run(feature: Feature) -> None:
    order = await feature.start(Order.run, 7)
    await order.signal(Order.note, "a")
    async with feature.worker([Order], [charge]):
        await settled(order)
        first = await order.reset(request_id="once")
        second = await order.reset(request_id="once")
        assert first.result_run_id == second.result_run_id
        await order.signal(Order.end)
        assert await order.result() == ["a", "140"]


async def test_what_is_drawn_behind_the_point_is_drawn_anew(feature: Feature) -> None:
    async with feature.worker([Dice]):
        dice = await feature.start(Dice.run)
        await dice.signal(Dice.roll)
        await feature.idle(dice)
        await dice.signal(Dice.roll)
        before = await dice.result()
        again = await dice.reset()
        await feature.follow(again, "again")
        after = await again.result()
        assert after[:2] == before[:2]
        assert len({*before, *after}) == 6
        assert await again.query(Dice.all_seeds) != [] == await feature.run(dice).query(Dice.all_seeds)


async def test_a_reset_run_that_fails_has_its_further_attempts(feature: Feature) -> None:
    """Its first event, with the input of the next attempt, stands in the prefix."""
    policy = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2)
    lucky = await feature.start(second_time_lucky, retry_policy=policy)
    async with feature.worker([second_time_lucky]):
        assert await lucky.result() == 2
        again = await feature.run(lucky).reset(reset_type=ResetType.LAST_WORKFLOW_TASK)
        await feature.follow(again, "again")
        assert await again.result() == 2
        assert (await lucky.describe()).run_id != again.result_run_id


async def test_a_reset_run_of_a_schedule_is_followed_by_the_next_turn(feature: Feature) -> None:
    scheduled = await feature.start(turns, cron_schedule="@every 1s")
    async with feature.worker([turns]):
        first = await feature.run(scheduled).result(follow_runs=False)
        again = await feature.run(scheduled).reset(reset_type=ResetType.LAST_WORKFLOW_TASK)
        assert first == await again.result(follow_runs=False) == 1
        current = feature.client.get_workflow_handle(scheduled.id)
        assert (await current.describe()).status is WorkflowExecutionStatus.RUNNING
        await current.terminate()
