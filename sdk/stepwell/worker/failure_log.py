"""Logs failing workflow tasks once each: a broken workflow is tried again and again, its log line is not."""

import logging
from collections import OrderedDict

from ..api.common import WorkflowExecution
from ..api.failures import ApplicationFailureInfo, Failure
from ..api.requests import WorkflowTask
from ..converter.failure_converter import readable
from ..converter.payload_converter import PayloadConverter
from ..replay.errors import ReadOnlyContextError, WorkflowTaskError

_REMEMBERED = 1000
_log = logging.getLogger("stepwell.worker")


class FailureLog:
    """Tells failures apart by run, cause and message."""

    def __init__(self, converter: PayloadConverter) -> None:
        self._converter = converter
        self._seen: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def report_query(self, task: WorkflowTask, query_type: str, error: ReadOnlyContextError) -> None:
        """A query that does more than read is a fault of the workflow's code, not of who asks."""
        _log.warning(
            "Query %r of workflow %s, id %r, run %s is refused until the code is fixed: %s",
            query_type,
            task.workflow_type,
            task.execution.workflow_id,
            task.execution.run_id,
            error,
        )

    def report(self, workflow_type: str, execution: WorkflowExecution, error: WorkflowTaskError) -> None:
        failure = readable(error.failure, self._converter)
        key = (execution.run_id, error.failed_cause, failure.message)
        if key in self._seen:
            self._seen.move_to_end(key)
            return
        self._seen[key] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        _log.warning(
            "Workflow task failed and is tried again until the code is fixed: workflow %s, id %r, run %s, %s: %s\n%s",
            workflow_type,
            execution.workflow_id,
            execution.run_id,
            error.failed_cause,
            _reason(failure),
            failure.stack_trace,
        )


def _reason(failure: Failure) -> str:
    """With the exception's type, since some say nothing else (``assert``)."""
    kind = failure.info.failure_type if isinstance(failure.info, ApplicationFailureInfo) else ""
    return ": ".join(part for part in (kind, failure.message) if part)
