"""What a batch asks of a workflow: complete over the operations, and the same request however often it is made."""

from datetime import UTC, datetime
from typing import get_args

import msgspec
import pytest
from stepwell.api import batches as b
from stepwell.api import requests as r
from stepwell.api.enums import BatchOperationType
from stepwell.api.errors import InvalidArgument, NotFound, Unavailable, WorkflowExecutionClosed

from stepwell_server.batcher import actions, records
from stepwell_server.batcher.records import Burst, Job, Target
from stepwell_server.frontend import validation_batches
from stepwell_server.history.codec import UnreadableRecord

T0 = datetime(2026, 11, 30, tzinfo=UTC)
ONE, TWO = Target("w-1", "r-1"), Target("w-2", "r-2")


def job(operation: b.BatchOperation, **more: object) -> Job:
    values: dict[str, object] = {"namespace": "n", "id": "job", "rate": 50.0, "started": T0, "next_at": T0}
    return Job(operation=operation, **(values | more))  # type: ignore[arg-type]


def test_every_operation_has_its_request_its_call_and_its_check():
    assert actions._REQUESTS.keys() == set(get_args(b.BatchOperation))
    assert actions._CALLS.keys() == set(get_args(actions.Asked))
    assert validation_batches._CHECKS.keys() == set(get_args(actions.Asked))
    fields = {"signal_name": "s", "activity_type": "a", "options": r.ActivityOptionsChange()}
    types = set()
    for operation in get_args(b.BatchOperation):
        wanted = {field.name: fields[field.name] for field in msgspec.structs.fields(operation) if field.required}
        types.add(records.type_of(operation(**wanted)))
    assert types == set(BatchOperationType)


@pytest.mark.parametrize(
    "operation", [b.BatchSignal(signal_name="s"), b.BatchCancel(), b.BatchReset(), b.BatchUnpause()]
)
def test_a_request_id_is_of_the_job_and_the_run(operation: b.BatchOperation):
    first = actions.request_of(job(operation), ONE)
    assert first == actions.request_of(job(operation), msgspec.structs.replace(ONE, tries=3))
    others = [
        actions.request_of(job(operation), TWO),
        actions.request_of(job(operation, id="another"), ONE),
        actions.request_of(job(operation, namespace="m"), ONE),
        actions.request_of(job(operation, started=datetime(2026, 12, 1, tzinfo=UTC)), ONE),
    ]
    assert len({request.request_id for request in (first, *others)}) == 5  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("operation", "narrowed"),
    [
        (b.BatchTerminate(), "(A = 1 OR B = 2) AND ExecutionStatus IN ('Running', 'Paused')"),
        (b.BatchSignal(signal_name="s"), "(A = 1 OR B = 2) AND ExecutionStatus IN ('Running', 'Paused')"),
        (b.BatchResetActivities(activity_type="a"), "(A = 1 OR B = 2) AND ExecutionStatus IN ('Running', 'Paused')"),
        (b.BatchUnpause(), "(A = 1 OR B = 2) AND ExecutionStatus = 'Paused'"),
        (b.BatchReset(), "(A = 1 OR B = 2)"),
        (b.BatchDelete(), "(A = 1 OR B = 2)"),
    ],
)
def test_a_filter_leaves_out_what_the_operation_means_nothing_to(operation: b.BatchOperation, narrowed: str):
    assert actions.narrowed(operation, "A = 1 OR B = 2") == narrowed


class Refusing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def terminate_workflow(self, request: r.TerminateWorkflowRequest) -> None:
        raise self.error

    async def delete_workflow(self, request: r.DeleteWorkflowRequest) -> None:
        raise self.error


CLOSED = WorkflowExecutionClosed("closed", status="COMPLETED")


async def test_what_an_earlier_try_may_have_deleted_is_done() -> None:
    """Its answer was lost, so it is tried again."""
    missing, tried = Refusing(NotFound("no")), msgspec.structs.replace(ONE, tries=1)
    done = await actions.act(missing, job(b.BatchDelete()), tried)  # type: ignore[arg-type]
    assert done.failure is None


@pytest.mark.parametrize(
    ("operation", "repeated", "error", "code", "later"),
    [
        (b.BatchTerminate(), False, CLOSED, "", False),
        (b.BatchTerminate(), False, NotFound("no"), "NOT_FOUND", False),
        (b.BatchTerminate(), False, Unavailable("full"), "UNAVAILABLE", True),
        (b.BatchTerminate(), False, InvalidArgument("bad"), "INVALID_ARGUMENT", False),
        (b.BatchTerminate(), False, UnreadableRecord("damaged"), "INTERNAL", True),
        (b.BatchDelete(), False, NotFound("no"), "NOT_FOUND", False),
        (b.BatchDelete(), True, NotFound("no"), "", False),
    ],
)
async def test_what_a_refusal_means(
    operation: b.BatchOperation, repeated: bool, error: Exception, code: str, later: bool
):
    burst = Burst(targets=(ONE,), until=T0, repeated=repeated)
    done = await actions.act(Refusing(error), job(operation, burst=burst), ONE)  # type: ignore[arg-type]
    assert (done.failure.code if done.failure else "", done.later) == (code, later)
