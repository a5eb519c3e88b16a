"""Lists of runs as most tests want them: by status and type, all at once or page by page."""

from datetime import datetime

from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.requests import WorkflowExecutionInfo

from stepwell_server.history.ports import VisibilityStore
from stepwell_server.visibility.attributes import STATUS, WORKFLOW_TYPE
from stepwell_server.visibility.filters import EVERY_RUN, Compare, Operator, Query, both
from stepwell_server.visibility.pages import Position


async def list_executions(
    visibility: VisibilityStore,
    namespace: str,
    *,
    status: WorkflowExecutionStatus | None,
    workflow_type: str,
    after: tuple[datetime, str] | None,
    limit: int,
) -> list[WorkflowExecutionInfo]:
    filter_ = EVERY_RUN
    if status is not None:
        filter_ = both(filter_, Compare(STATUS, Operator.EQ, status.value))
    if workflow_type:
        filter_ = both(filter_, Compare(WORKFLOW_TYPE, Operator.EQ, workflow_type))
    place = None if after is None else Position(*after)
    return (await visibility.search(namespace, Query(filter_), after=place, limit=limit)).executions
