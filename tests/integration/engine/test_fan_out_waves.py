"""A fan-out in waves below the limit of pending activities costs in its last wave what it did in its first: writes,
events and bytes (design section 12). The whole of 10,000 is ``tests/integration/sdk/test_fan_out.py`` and
``benchmarks/growth.py --fan-out``.
"""

from datetime import timedelta

import msgspec
from stepwell.api.commands import CompleteWorkflowExecution

from tests.support.engine import Driver, activity, running

WAVES, WIDE = 10, 150


def _cost(driver: Driver) -> tuple[int, int, int]:
    """Appends, events, and the largest commit in bytes, less its events."""
    commits = driver.store.commits
    states = [len(msgspec.msgpack.encode(commit.state)) for commit in commits]
    return len(commits), sum(len(commit.events) for commit in commits), max(states)


def _wave(number: int, *, eager: bool) -> list[object]:
    return [activity(f"{number:02}-{one:03}", eager=eager) for one in range(WIDE)]


def _are_flat(costs: list[tuple[int, int, int]]) -> None:
    """Numbers of events and seqs have more digits later on; nothing else may grow."""
    for appends, events, state in costs[1:]:
        assert (appends, events) == costs[0][:2], costs
        assert abs(state - costs[0][2]) <= costs[0][2] * 0.05, costs


async def test_waves_of_leased_activities_are_one_commit_each() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, *_wave(0, eager=True), slots=WIDE)  # type: ignore[arg-type]
        costs = []
        for number in range(1, WAVES):
            driver.store.reset()
            answer = await driver.fused(
                answer,
                *_wave(number, eager=True),  # type: ignore[arg-type]
                now=answer.commit_time,  # type: ignore[arg-type]
                slots=WIDE,
            )
            assert driver.store.counts["head"] == driver.store.counts["activities"] == 0
            costs.append(_cost(driver))
        assert {cost[0] for cost in costs} == {1}
        _are_flat(costs)
        await driver.fused(answer, CompleteWorkflowExecution(), now=answer.commit_time)  # type: ignore[arg-type]


async def test_waves_through_the_queue_cost_the_same_each() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        costs, puts = [], set()
        for number in range(WAVES):
            driver.store.reset()
            await driver.complete(task.task_token, *_wave(number, eager=False))  # type: ignore[arg-type]
            attempts = []
            while len(attempts) < WIDE:
                attempts += await driver.poll_activities(maximum=50, timeout=timedelta(seconds=5))
            assert all(not reply.error_code for reply in await driver.done(*attempts))
            task = await driver.take()
            assert sum(event.event_type == "ActivityTaskCompleted" for event in task.events) == WIDE
            costs.append(_cost(driver))
            puts.add(driver.store.counts["put_activity"])
            assert driver.store.counts["head"] + driver.store.counts["activities"] == 0
        assert puts == {2 * WIDE}
        _are_flat(costs[1:])
        await driver.finish(task)
