"""The contract of VisibilityStore: what RecordVisibility tasks and ``owes`` project."""

from datetime import timedelta

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.payloads import Payload
from stepwell.api.requests import WorkflowExecutionInfo

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.tasks import RecordVisibility
from tests.support.listed import list_executions
from tests.support.sample_commits import EPOCH, SampleRun

RUNNING, COMPLETED = WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED


async def listed(
    backend: Backend,
    *,
    namespace: str = "default",
    status: WorkflowExecutionStatus | None = None,
    workflow_type: str = "",
    page: int = 100,
) -> list[WorkflowExecutionInfo]:
    """All pages."""
    everything: list[WorkflowExecutionInfo] = []
    after = None
    while True:
        part = await list_executions(
            backend.visibility, namespace, status=status, workflow_type=workflow_type, after=after, limit=page
        )
        assert len(part) <= page
        everything += part
        if len(part) < page:
            return everything
        after = (part[-1].start_time, part[-1].execution.run_id)


async def test_an_open_run_is_listed_as_its_start_said(backend: Backend) -> None:
    run = SampleRun(1)
    await backend.log.append(next(run.commits()))
    (info,) = await listed(backend)
    assert (info.execution.workflow_id, info.execution.run_id) == (run.workflow_id, run.run_id)
    assert (info.workflow_type, info.task_queue, info.status) == ("fulfil_order", "orders", RUNNING)
    assert (info.start_time, info.close_time, info.first_run_id) == (run.start_time, None, run.run_id)
    assert (info.history_length, info.history_size_bytes) == (2, 610)


async def test_a_closed_run_shows_how_and_when_it_ended(backend: Backend) -> None:
    run = SampleRun(2)
    for commit in run.commits():
        await backend.log.append(commit)
    (info,) = await listed(backend)
    assert (info.status, info.close_time, info.history_length) == (COMPLETED, commit.state.close_time, 23)


async def test_memo_and_search_attributes_are_shown(backend: Backend) -> None:
    start = next(SampleRun(3).commits())
    memo = {"note": Payload(metadata={"encoding": "json/plain"}, data=b'"rush"')}
    attributes = {"Customer": Payload(metadata={"encoding": "json/plain"}, data=b'"c-1"')}
    (record,) = (task for task in start.tasks if isinstance(task, RecordVisibility))
    record = msgspec.structs.replace(record, memo=memo, search_attributes=attributes)
    await backend.log.append(msgspec.structs.replace(start, tasks=(record,)))
    (info,) = await listed(backend)
    assert (info.memo, info.search_attributes) == (memo, attributes)


async def test_newest_start_first_in_pages_of_any_size(backend: Backend) -> None:
    runs = [SampleRun(number, start_time=EPOCH + timedelta(seconds=number // 3)) for number in range(20)]
    for run in runs:
        await backend.log.append(next(run.commits()))
    expected = [run.run_id for run in sorted(runs, key=lambda run: (run.start_time, run.run_id), reverse=True)]
    for page in (1, 3, 7, 100):
        assert [info.execution.run_id for info in await listed(backend, page=page)] == expected


async def test_filters_by_namespace_status_and_type(backend: Backend) -> None:
    for number in range(12):
        run = SampleRun(
            number,
            namespace="other" if number % 4 == 3 else "default",
            workflow_type="refund" if number % 2 else "fulfil_order",
        )
        commits = list(run.commits())
        for commit in commits if number % 3 else commits[:1]:
            await backend.log.append(commit)

    def ids(infos: list[WorkflowExecutionInfo]) -> set[int]:
        return {int(info.execution.workflow_id.removeprefix("order-")) for info in infos}

    assert ids(await listed(backend)) == {0, 1, 2, 4, 5, 6, 8, 9, 10}
    assert ids(await listed(backend, namespace="other")) == {3, 7, 11}
    assert ids(await listed(backend, status=RUNNING)) == {0, 6, 9}
    assert ids(await listed(backend, status=COMPLETED, page=2)) == {1, 2, 4, 5, 8, 10}
    assert ids(await listed(backend, workflow_type="refund", page=1)) == {1, 5, 9}
    assert ids(await listed(backend, status=RUNNING, workflow_type="refund")) == {9}
    assert ids(await listed(backend, status=WorkflowExecutionStatus.FAILED)) == set()


async def test_each_run_of_an_id_has_its_own_record(backend: Backend) -> None:
    first, second = SampleRun(4), SampleRun(4, run=1, first_seq=6, start_time=EPOCH + timedelta(hours=1))
    for commit in [*first.commits(), next(second.commits())]:
        await backend.log.append(commit)
    infos = await listed(backend)
    assert [(info.execution.run_id, info.status) for info in infos] == [
        (second.run_id, RUNNING),
        (first.run_id, COMPLETED),
    ]


async def test_a_commit_may_close_the_run_before_its_own(backend: Backend) -> None:
    first, second = SampleRun(5), SampleRun(5, run=1, first_seq=2, start_time=EPOCH + timedelta(hours=1))
    start = next(first.commits())
    await backend.log.append(start)
    (record,) = (task for task in start.tasks if isinstance(task, RecordVisibility))
    closed_at = EPOCH + timedelta(minutes=59)
    record = msgspec.structs.replace(
        record, status=WorkflowExecutionStatus.CONTINUED_AS_NEW, close_time=closed_at, history_length=7
    )
    opening = next(second.commits())
    await backend.log.append(msgspec.structs.replace(opening, tasks=(record, *opening.tasks)))
    new, old = await listed(backend)
    assert (new.execution.run_id, new.status) == (second.run_id, RUNNING)
    assert (old.status, old.close_time, old.history_length) == ("CONTINUED_AS_NEW", closed_at, 7)
    assert old.workflow_type == "fulfil_order"


async def test_owing_follows_the_newest_word(embedded: Backend) -> None:
    runs = {number: list(SampleRun(number).commits()) for number in (3, 1, 2)}
    for commits in runs.values():
        await embedded.log.append(commits[0])
    keys = [runs[number][0].key for number in (1, 2, 3)]
    assert await embedded.visibility.owing(None, 10) == keys
    assert await embedded.visibility.owing(None, 2) == keys[:2]
    assert await embedded.visibility.owing(keys[0], 10) == keys[1:]
    for commit in runs[2][1:]:  # None in between says: as before
        assert keys[1] in await embedded.visibility.owing(None, 10)
        await embedded.log.append(commit)
    assert await embedded.visibility.owing(None, 10) == [keys[0], keys[2]]


async def test_owing_is_in_key_order(embedded: Backend) -> None:
    for number, (namespace, workflow_id) in enumerate([("b", "a"), ("a", "b"), ("a", "B"), ("c", "a")]):
        run = SampleRun(number, namespace=namespace, workflow_id=workflow_id)
        await embedded.log.append(next(run.commits()))
    keys = await embedded.visibility.owing(None, 10)
    assert keys == [ExecutionKey("a", "B"), ExecutionKey("a", "b"), ExecutionKey("b", "a"), ExecutionKey("c", "a")]
    assert await embedded.visibility.owing(keys[1], 10) == keys[2:]
