"""Lists of workers: one entry for each worker and task queue, filters, pages (VI-20)."""

from datetime import UTC, datetime, timedelta

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import ListWorkersRequest, PollerInfo, WorkerInfo

from stepwell_server.history.workers import Seen, page_of

AT = datetime(2026, 12, 1, tzinfo=UTC)


def seen(
    identity: str, queue: str = "orders", kind: TaskQueueKind = TaskQueueKind.WORKFLOW, ago: int = 0, build: str = ""
) -> Seen:
    worker = WorkerInfo(identity=identity, worker_key=f"key {build}", build_id=build) if build else None
    poller = PollerInfo(identity=identity, last_access_time=AT - timedelta(seconds=ago))
    return Seen(queue, kind, poller, worker)


def test_a_worker_is_one_entry_for_each_queue_with_what_it_said_last() -> None:
    (bills, orders) = page_of(
        ListWorkersRequest(),
        [
            seen("one", ago=5, build="2"),
            seen("one", kind=TaskQueueKind.ACTIVITY, ago=9, build="1"),
            seen("one", queue="bills", kind=TaskQueueKind.ACTIVITY),
        ],
    ).workers
    assert (bills.task_queue, bills.kinds, bills.build_id) == ("bills", (TaskQueueKind.ACTIVITY,), "")
    assert orders.kinds == tuple(TaskQueueKind) and orders.last_poll_time == AT - timedelta(seconds=5)
    assert (orders.build_id, orders.worker_key) == ("2", "key 2")


def test_filters() -> None:
    polls = [seen("10@host"), seen("1@host"), seen("2@host")]

    def found(request: ListWorkersRequest) -> list[str]:
        return [each.identity for each in page_of(request, polls).workers]

    assert found(ListWorkersRequest(identity="1@host")) == ["1@host"]
    assert found(ListWorkersRequest(identity_prefix="1")) == ["10@host", "1@host"]
    assert found(ListWorkersRequest(identity="1@host", identity_prefix="2")) == []


def test_pages_have_each_once_while_workers_come_and_go() -> None:
    polls = [seen("c"), seen("a"), seen("b", queue="zeta"), seen('d"\n'), seen("b")]
    first = page_of(ListWorkersRequest(page_size=2), polls)
    assert [each.identity for each in first.workers] == ["a", "b"]
    gone = [each for each in polls if each.poller.identity != "a"] + [seen("aa")]
    rest = page_of(ListWorkersRequest(page_size=2, next_page_token=first.next_page_token), gone)
    last = page_of(ListWorkersRequest(page_size=2, next_page_token=rest.next_page_token), gone)
    assert [each.identity for each in (*rest.workers, *last.workers)] == ["c", 'd"\n', "b"]
    assert last.next_page_token == b""


@pytest.mark.parametrize("token", [b"x", b"\xff", b'["a"]', b'["a", 1]', b'["a", "b", "c"]'])
def test_a_token_of_another_list_is_refused(token: bytes) -> None:
    with pytest.raises(InvalidArgument, match="next_page_token is none of ListWorkers"):
        page_of(ListWorkersRequest(next_page_token=token), [])
