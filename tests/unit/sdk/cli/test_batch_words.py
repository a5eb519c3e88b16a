"""How far a batch is, in words."""

from datetime import UTC, datetime

import pytest
from stepwell.api.batches import BatchOperationInfo
from stepwell.api.enums import BatchOperationState as State
from stepwell.api.enums import BatchOperationType
from stepwell.cli.batches import _counts


@pytest.mark.parametrize(
    ("state", "all_found", "end"),
    [
        (State.RUNNING, False, "of 20 found so far"),
        (State.RUNNING, True, "of 20 found"),
        (State.COMPLETED, False, "of 20 found"),
    ],
)
def test_it_says_whether_more_may_be_found(state: State, all_found: bool, end: str) -> None:
    info = BatchOperationInfo(
        job_id="j",
        operation_type=BatchOperationType.TERMINATE,
        state=state,
        start_time=datetime(2026, 12, 1, tzinfo=UTC),
        total_operation_count=20,
        complete_operation_count=19,
        failure_operation_count=1,
        all_found=all_found,
    )
    assert _counts(info) == f"19 done, 1 failed, {end}"
