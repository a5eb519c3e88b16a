"""Each batch reaches each workflow once, whatever dies, fails or comes twice; and the simulation would notice."""

import contextlib
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any
from unittest import mock

import msgspec
import pytest

from stepwell_server.batcher import actions, batches, step
from stepwell_server.batcher.records import Done, Job, Page, Target
from stepwell_server.history.ports import StoreUnavailable
from tests.simulation.batches import BatchedWorld
from tests.simulation.history_rules import Violation
from tests.simulation.ports import FaultyLog
from tests.simulation.world import simulate

SEEDS = range(10)
FOUND_BY = (20, 41)
"""Seeds by which rare ones were found; looked at first."""

_act = actions.act
_once = actions._once
_claimed = step.claimed
_finished = step.finished
_erase_run = FaultyLog.erase_run


def test_batches_under_faults() -> None:
    commits = faults = 0
    for seed in SEEDS:
        outcome = simulate(seed, world=BatchedWorld)
        commits += outcome.commits
        faults += sum(outcome.faults.values())
    assert commits > 500 and faults > 100


def ids_of_each_attempt() -> Any:
    """A request that is made again is another one."""

    def once(job: Job, target: Target) -> dict[str, Any]:
        return {**_once(job, target), "request_id": uuid.uuid4().hex}

    return mock.patch.object(actions, "_once", once)


def a_claimed_burst_counts_as_done() -> Any:
    """Whoever comes behind one that died goes on with the next."""

    def claimed(job: Job, page: Page | None, targets: tuple[Target, ...], now: datetime) -> Job:
        if job.burst is not None:
            return _finished(job, [Done(target=target) for target in targets], now, now)
        return _claimed(job, page, targets, now)

    return mock.patch.object(step, "claimed", claimed)


def a_deletion_whose_answer_was_lost_has_failed() -> Any:
    """A second try does not know that there was a first."""

    async def act(workflows: Any, job: Job, target: Target) -> Done:
        return await _act(workflows, job, msgspec.structs.replace(target, tries=0))

    return mock.patch.object(batches, "act", act)


def what_waits_is_left_out() -> Any:
    """What cannot be done for the moment counts as done."""

    def finished(job: Job, outcomes: Any, acted: datetime, now: datetime) -> Job:
        return _finished(job, [Done(target=one.target) if one.later else one for one in outcomes], acted, now)

    return mock.patch.object(step, "finished", finished)


def wake_ups_are_armed_once() -> Any:
    """Only when a job begins: nobody comes behind one that died."""

    async def put(self: batches.Batches, record: Any, job: Job) -> Any:
        record = record._replace(version=record.version + 1, value=batches.records.encode(job))
        await self._store.put(record, arm=step.wakes_at(job) if not job.found and job.burst is None else None)
        return record, job

    return mock.patch.object(batches.Batches, "_put", put)


def deletions_are_given_up() -> Any:
    """Whoever fails to erase a run records all the same that it is gone."""

    async def erase_run(self: FaultyLog, key: Any, run_id: str) -> None:
        with contextlib.suppress(StoreUnavailable):
            await _erase_run(self, key, run_id)

    return mock.patch.object(FaultyLog, "erase_run", erase_run)


@pytest.mark.parametrize(
    "plant",
    [
        ids_of_each_attempt,
        a_claimed_burst_counts_as_done,
        what_waits_is_left_out,
        wake_ups_are_armed_once,
        a_deletion_whose_answer_was_lost_has_failed,
        deletions_are_given_up,
    ],
)
def test_the_simulation_finds(plant: Callable[[], Any]) -> None:
    for seed in (*FOUND_BY, *range(60)):
        try:
            with plant():
                simulate(seed, world=BatchedWorld)
        except Violation:
            return
    pytest.fail(f"{plant.__name__} was not found in 60 seeds")
