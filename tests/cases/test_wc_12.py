"""WC-12: asking for a patch inside a loop. A round's second is 0.1 s here.

The rule (docs/architecture/replay.md): the first answer holds for the rest of the run, live and in replay, with at most
one marker for a patch and run; a query never writes one.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import (
    ActivityTaskScheduled,
    HistoryEvent,
    MarkerRecorded,
    WorkflowTaskFailed,
)
from stepwell.client import WorkflowFailureError, WorkflowHandle
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer

from tests.support.cases import ATTEMPT, Case, attributes, events_of, until

ROUNDS = 6
PAUSE = timedelta(milliseconds=100)


@activity.defn(name="A")
async def a() -> str:
    return "A"


@activity.defn(name="B")
async def b() -> str:
    return "B"


async def one_round(name: str) -> str:
    done: str = await workflow.execute_activity(name, start_to_close_timeout=ATTEMPT)
    await workflow.sleep(PAUSE)
    return done


@workflow.defn(name="Rounds")
class V1:
    def __init__(self) -> None:
        self.done: list[str] = []

    @workflow.query
    def progress(self) -> list[str]:
        return self.done

    @workflow.signal
    def ask(self) -> None:
        """Nothing to ask for yet."""

    @workflow.run
    async def run(self) -> list[str]:
        for _ in range(ROUNDS):
            self.done.append(await one_round("A"))
        return self.done


@workflow.defn(name="Rounds")
class V2:
    """Asks in every round, twice; and in a signal handler and a query handler."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.answers: list[bool] = []

    @workflow.query
    def progress(self) -> list[str]:
        return self.done

    @workflow.query
    def asked_by_query(self) -> bool:
        return workflow.patched("p")

    @workflow.query
    def all_answers(self) -> list[bool]:
        return self.answers

    @workflow.signal
    def ask(self) -> None:
        self.answers.append(workflow.patched("p"))

    @workflow.run
    async def run(self) -> list[str]:
        for _ in range(ROUNDS):
            first = workflow.patched("p")
            second = workflow.patched("p")
            self.answers += [first, second]
            self.done.append(await one_round("B" if first else "A"))
        return self.done


def scheduled(events: Sequence[HistoryEvent]) -> list[str]:
    return [event.activity_type for event in attributes(events, ActivityTaskScheduled)]


async def replay_at_every_point(events: Sequence[HistoryEvent], code: Any) -> None:
    """At each task, as a worker without a cache does it, and after each event that a reader may have seen as the last:
    what a task decided is recorded with it. Raises on any mismatch."""
    replayer = Replayer(workflows=[code])
    following: Sequence[HistoryEvent | None] = [*events[1:], None]
    for count, after in enumerate(following, start=1):
        if after is None or not hasattr(after.attributes, "workflow_task_completed_event_id"):
            await replayer.replay_workflow(WorkflowHistory("rounds", events[:count]))


async def rounds_done(handle: WorkflowHandle[Any], count: int) -> None:
    async def done() -> bool:
        return len(await handle.query("progress", result_type=list[str])) >= count

    await until(done)


async def test_a_new_run_takes_the_new_path(case: Case) -> None:
    """Tried: v2 asks ``patched("p")`` in every round, twice, and in a signal handler and a query handler; a new run.

    Right: B six times; all answers are true; one marker; the query wrote nothing. Replay at every point agrees.
    """
    async with case.worker([V2], [a, b]):
        handle = await case.start(V2.run, id="rounds")
        await rounds_done(handle, 1)
        before = len(attributes(await events_of(handle), MarkerRecorded))
        assert await handle.query(V2.asked_by_query) is True
        assert len(attributes(await events_of(handle), MarkerRecorded)) == before == 1
        await handle.signal(V2.ask)
        assert await handle.result() == ["B"] * ROUNDS
        assert set(await handle.query(V2.all_answers)) == {True}
        assert len(await handle.query(V2.all_answers)) == 2 * ROUNDS + 1
        assert await handle.query(V2.asked_by_query) is True
    events = await events_of(handle)
    assert scheduled(events) == ["B"] * ROUNDS
    assert len(attributes(events, MarkerRecorded)) == 1
    assert attributes(events, WorkflowTaskFailed) == []
    await replay_at_every_point(events, V2)


async def test_an_old_run_stays_on_the_old_path(case: Case) -> None:
    """Tried: a run begins on v1 and does three rounds; then the worker has v2. It is asked by signal and by query too.

    Right: by the rule, the answer is false for the rest of the run wherever it is asked, since the code passed there
    before: A six times, no marker. Replay at every point agrees; no non-determinism error.
    """
    async with case.worker([V1], [a, b]):
        handle = await case.start(V1.run, id="rounds")
        await rounds_done(handle, 3)
    async with case.worker([V2], [a, b]):
        assert await handle.query(V2.asked_by_query) is False
        await handle.signal(V2.ask)
        assert await handle.result() == ["A"] * ROUNDS
        answers = await handle.query(V2.all_answers)
        assert Counter(answers) == {False: 2 * ROUNDS + 1}
        assert await handle.query(V2.asked_by_query) is False
    events = await events_of(handle)
    assert scheduled(events) == ["A"] * ROUNDS
    assert attributes(events, MarkerRecorded) == []
    assert attributes(events, WorkflowTaskFailed) == []
    await replay_at_every_point(events, V2)


@workflow.defn(name="Late")
class LateV1:
    def __init__(self) -> None:
        self.asked: list[bool] = []

    @workflow.signal
    def ask(self) -> None:
        self.asked.append(False)

    @workflow.run
    async def run(self) -> list[bool]:
        await workflow.wait_condition(lambda: len(self.asked) == 3)
        return self.asked


@workflow.defn(name="Late")
class LateV2:
    """The patch is asked for only in a signal handler, which may come at any time."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    @workflow.query
    def asked_by_query(self) -> bool:
        return workflow.patched("late")

    @workflow.signal
    def ask(self) -> None:
        self.asked.append(workflow.patched("late"))

    @workflow.run
    async def run(self) -> list[bool]:
        await workflow.wait_condition(lambda: len(self.asked) == 3)
        return self.asked


async def test_a_query_before_anybody_asked(case: Case) -> None:
    """Tried: a query asks for the patch on a new run whose code has not asked for it: while its worker may have it
    cached, after the worker's restart, and once the run is closed without ever asking.

    Right: the same answer each time, false, since no marker is recorded.
    """
    async with case.worker([LateV2]):
        handle = await case.start(LateV2.run, id="new")
        assert await handle.query(LateV2.asked_by_query) is False
    async with case.worker([LateV2]):
        assert await handle.query(LateV2.asked_by_query) is False
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert await handle.query(LateV2.asked_by_query) is False
    assert attributes(await events_of(handle), MarkerRecorded) == []


async def test_a_patch_that_only_a_signal_handler_asks_for(case: Case) -> None:
    """Tried: a run waits on v1 and has got one signal there (its handler now asks), or none; then the worker has v2 and
    the signals come. Queries ask before the first signal, between, and after; the worker is restarted between.

    Right: with one that passed before, false throughout and no marker. With none, the question is a new one: true
    throughout, one marker. A query never writes, and never changes what the run is told later; where the run has not
    asked, it is told false, with a cache and without. No task fails.
    """
    for before, expected in ((1, False), (0, True)):
        async with case.worker([LateV1]):
            handle = await case.start(LateV1.run, id=f"late-{before}")
            for _ in range(before):
                await handle.signal("ask")

            async def settled(handle: WorkflowHandle[Any] = handle) -> bool:
                described = await handle.describe()
                return described.pending_workflow_task is None and described.history_length >= 4

            await until(settled)
        async with case.worker([LateV2]):
            assert await handle.query(LateV2.asked_by_query) is False
            assert attributes(await events_of(handle), MarkerRecorded) == []
            await handle.signal("ask")
            assert await handle.query(LateV2.asked_by_query) is expected
        async with case.worker([LateV2]):
            assert await handle.query(LateV2.asked_by_query) is expected
            for _ in range(2 - before):
                await handle.signal("ask")
            assert await handle.result() == [expected] * 3
            assert await handle.query(LateV2.asked_by_query) is expected
        events = await events_of(handle)
        assert len(attributes(events, MarkerRecorded)) == int(expected)
        assert attributes(events, WorkflowTaskFailed) == []
        await replay_at_every_point(events, LateV2)
