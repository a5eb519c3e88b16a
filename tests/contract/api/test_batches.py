"""Batch operations over every transport: started, looked at, and what is refused before anything is changed."""

from typing import Any

import pytest
from stepwell.api import batches as b
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound, PayloadTooLarge
from stepwell.api.payloads import Payload

from tests.contract.api.client import ApiClient
from tests.support.cases import until

ONE = WorkflowExecution(workflow_id="order-1")
LIST: dict[str, Any] = {"job_id": "job", "operation": b.BatchTerminate(), "executions": (ONE,)}
LONG = "x" * 1_001
OPTIONS = r.WorkflowExecutionOptions()
CASES: list[tuple[dict[str, Any], str]] = [
    ({"job_id": ""}, "job_id is empty"),
    ({"job_id": "a\nb"}, "job_id contains the control character"),
    ({"namespace": "a#b"}, "namespace.*'#'"),
    ({"executions": ()}, "neither is given; give exactly one"),
    ({"query": "WorkflowType = 'x'"}, "both are given; give exactly one"),
    ({"executions": (ONE,) * 1_001}, "number of executions is 1001.*limit of 1000.*several batches"),
    ({"executions": (ONE, WorkflowExecution(workflow_id=""))}, r"executions\[1\].workflow_id is empty"),
    ({"executions": (WorkflowExecution(workflow_id="w", run_id=LONG),)}, r"executions\[0\].run_id has 1001 bytes"),
    ({"executions": (WorkflowExecution(workflow_id="w", run_id="r" * 101),)}, "run_id has 101 bytes.*limit of 100"),
    ({"max_operations_per_second": 51.0}, "max_operations_per_second is 51; give a number from 0.001 to 50"),
    ({"max_operations_per_second": 1e-300}, "max_operations_per_second is 1e-300; give a number from 0.001 to 50"),
    ({"max_operations_per_second": -1.0}, "max_operations_per_second is -1"),
    ({"reason": LONG}, "reason has 1001 bytes"),
    ({"operation": b.BatchSignal(signal_name="")}, "signal_name is empty"),
    ({"operation": b.BatchReset(build_id="b1")}, "build_id goes with reset_type BUILD_ID"),
    ({"operation": b.BatchUpdateOptions(workflow_execution_options=OPTIONS, update_mask="name")}, "cannot be changed"),
    ({"operation": b.BatchUpdateOptions(workflow_execution_options=OPTIONS)}, "update_mask is empty"),
    ({"operation": b.BatchUnpauseActivities(activity_type="")}, "activity_type"),
    ({"operation": b.BatchResetActivities(activity_type="a\x1b")}, "activity_type"),
    ({"operation": b.BatchUpdateActivityOptions(activity_type="a", options=r.ActivityOptionsChange())}, "option"),
]


@pytest.mark.parametrize(("change", "message"), CASES, ids=[f"{i}" for i in range(len(CASES))])
async def test_what_cannot_be_is_refused_by_name(api: ApiClient, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        await api.call(o.START_BATCH_OPERATION, **(LIST | change))
    assert not (await api.call(o.LIST_BATCH_OPERATIONS)).operations


async def test_a_batch_holds_no_large_payloads(api: ApiClient) -> None:
    large = b.BatchSignal(signal_name="s", input=(Payload(data=b"x" * 200_000),))
    with pytest.raises(PayloadTooLarge, match=r"above the limit of 150000 for a batch; .* reference"):
        await api.call(o.START_BATCH_OPERATION, **(LIST | {"operation": large}))


async def test_unknown_batches_are_not_found(api: ApiClient) -> None:
    for operation in (o.DESCRIBE_BATCH_OPERATION, o.STOP_BATCH_OPERATION):
        with pytest.raises(NotFound, match=r"no batch operation 'nobody'.*kept for 7 days"):
            await api.call(operation, job_id="nobody")
    with pytest.raises(InvalidArgument, match="next_page_token is none of ListBatchOperations"):
        await api.call(o.LIST_BATCH_OPERATIONS, next_page_token=b"\xff")
    with pytest.raises(InvalidArgument, match="next_page_token is none of ListBatchOperations"):
        await api.call(o.LIST_BATCH_OPERATIONS, next_page_token="é".encode() * 600)


async def test_from_start_to_end(api: ApiClient) -> None:
    await api.start()
    await api.call(o.START_BATCH_OPERATION, **LIST, identity="me")

    async def over() -> bool:
        return (await api.call(o.DESCRIBE_BATCH_OPERATION, job_id="job")).info.state == "COMPLETED"

    await until(over)
    found = await api.call(o.DESCRIBE_BATCH_OPERATION, job_id="job")
    assert (found.info.total_operation_count, found.info.complete_operation_count, found.identity) == (1, 1, "me")
    (listed,) = (await api.call(o.LIST_BATCH_OPERATIONS)).operations
    assert listed == found.info
    assert (await api.call(o.DESCRIBE_WORKFLOW, execution=ONE)).info.status == "TERMINATED"
