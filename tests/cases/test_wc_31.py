"""WC-31: what happens to signals and updates after the reset point."""

from collections.abc import Sequence

import pytest
from stepwell import workflow
from stepwell.client import WorkflowHandle, WorkflowUpdateStage
from stepwell.common import ResetReapplyExcludeType

from tests.support.cases import Case, events_of, until

EVERYTHING = list(ResetReapplyExcludeType)
UPDATES = [ResetReapplyExcludeType.UPDATE]


@workflow.defn
class Inbox:
    """Continues as new with what it has seen, once that is three messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @workflow.signal
    def note(self, text: str) -> None:
        self.messages.append(text)

    @workflow.update
    def change(self, text: str) -> int:
        self.messages.append(text)
        return len(self.messages)

    @workflow.query
    def seen(self) -> list[str]:
        return self.messages

    @workflow.run
    async def run(self, before: list[str]) -> None:
        self.messages[:0] = before
        await workflow.sleep(0.001)  # A
        await workflow.wait_condition(lambda: not before and len(self.messages) >= 3)
        workflow.continue_as_new(self.messages)


async def seen(case: Case, expected: Sequence[str]) -> None:
    handle = case.client.get_workflow_handle("inbox")

    async def all_there() -> bool:
        return await handle.query(Inbox.seen) == expected

    await until(all_there)


async def completed(handle: WorkflowHandle[None], count: int) -> int:
    """Event id of the end of the so many-th workflow task."""

    async def found() -> int:
        events = await events_of(handle)
        ends = [event.event_id for event in events if event.event_type == "WorkflowTaskCompleted"]
        return ends[count - 1] if len(ends) >= count else 0

    return await until(found)


@pytest.mark.parametrize(
    ("exclude", "kept"),
    [([], ["s1", "s2", "u1", "s3"]), (EVERYTHING, []), (UPDATES, ["s1", "s2", "s3"])],
    ids=["everything", "nothing", "signals only"],
)
async def test_messages_behind_the_point(
    case: Case, exclude: Sequence[ResetReapplyExcludeType], kept: Sequence[str]
) -> None:
    async with case.worker([Inbox]):
        started = await case.start(Inbox.run, [], id="inbox")
        first = case.client.get_workflow_handle("inbox", run_id=started.result_run_id)
        point = await completed(first, 2)  # it has seen that A is over
        await started.signal(Inbox.note, "s1")
        await started.signal(Inbox.note, "s2")
        assert await started.execute_update(Inbox.change, "u1", id="u1") == 3
        await seen(case, ["s1", "s2", "u1"])
        await started.signal(Inbox.note, "s3")
        await seen(case, ["s1", "s2", "u1", "s3"])
        await case.client.get_workflow_handle("inbox").terminate(reason="closed")
        stranger = await case.start(Inbox.run, [], id="inbox")
        await stranger.signal(Inbox.note, "s4")
        await seen(case, ["s4"])
        made = await first.reset(event_id=point, exclude=exclude, request_id="k")
        again = await first.reset(event_id=point, exclude=exclude, request_id="k")
        assert again.result_run_id == made.result_run_id
        await seen(case, kept)
        old = case.client.get_workflow_handle("inbox", run_id=stranger.result_run_id)
        assert (await old.describe()).status.name == "TERMINATED"
        assert await first.get_update_handle("u1", result_type=int).result() == 3


async def test_an_update_that_nobody_has_answered_yet_is_answered_by_the_new_run(case: Case) -> None:
    started = await case.start(Inbox.run, [], id="inbox")
    async with case.worker([Inbox]):
        await completed(started, 2)
    await started.signal(Inbox.note, "s1")
    update = await started.start_update(Inbox.change, "u1", id="u1", wait_for_stage=WorkflowUpdateStage.ADMITTED)
    await started.reset()
    async with case.worker([Inbox]):
        assert await update.result() == 2
        await seen(case, ["s1", "u1"])
