"""Counts what fails at a worker, under the field's names, for its ``metric_recorder`` (AC-13).

Benign failures are expected ones, which are not counted. An attempt that is tried again counts each time; a workflow's
failure counts once the engine has accepted it.
"""

import logging

from ..api.enums import WorkflowTaskFailedCause
from ..api.failures import ApplicationFailureInfo, Failure
from ..exceptions import ApplicationErrorCategory
from ..workflow.metrics import Metric, MetricKind, MetricRecorder

_log = logging.getLogger("stepwell.worker")

_REASONS = {
    WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR: "NonDeterminismError",
    WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE: "PayloadsTooLarge",
    WorkflowTaskFailedCause.REQUEST_TOO_LARGE: "RequestTooLarge",
}
_OTHER_REASON = "WorkflowError"


class FailureMetrics:
    """Of one worker. Without a recorder it does nothing; one that raises is logged, and keeps no outcome back."""

    def __init__(self, recorder: MetricRecorder | None, namespace: str, task_queue: str) -> None:
        self._recorder = recorder
        self._common = {"namespace": namespace, "task_queue": task_queue}

    def activity(self, activity_type: str, workflow_type: str, failure: Failure, *, local: bool = False) -> None:
        """An attempt failed."""
        if not is_benign(failure):
            name = "local_activity_execution_failed" if local else "activity_execution_failed"
            what = "attempts of local activities that failed" if local else "attempts of activities that failed"
            self._count(name, what, activity_type=activity_type, workflow_type=workflow_type)

    def workflow(self, workflow_type: str, failure: Failure) -> None:
        """A run ended with this failure."""
        if not is_benign(failure):
            self._count("workflow_failed", "runs that failed", workflow_type=workflow_type)

    def workflow_task(self, workflow_type: str, cause: WorkflowTaskFailedCause) -> None:
        """Workflow code could not go on; the task is tried again."""
        reason = _REASONS.get(cause, _OTHER_REASON)
        what = "workflow tasks that failed"
        self._count("workflow_task_execution_failed", what, workflow_type=workflow_type, failure_reason=reason)

    def _count(self, name: str, description: str, **attributes: str) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder(Metric(MetricKind.COUNTER, name, 1, {**self._common, **attributes}, description))
        except Exception:
            _log.exception("The metric_recorder did not take %s", name)


def is_benign(failure: Failure) -> bool:
    """Whether its author expects it."""
    info = failure.info
    return isinstance(info, ApplicationFailureInfo) and info.category == ApplicationErrorCategory.BENIGN
