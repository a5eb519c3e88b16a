"""Commands by which a run closes, or changes what is known of it."""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers, Memo, RetryPolicy
from .failures import Failure
from .payloads import Payloads


class CompleteWorkflowExecution(Tagged, frozen=True, kw_only=True):
    result: Payloads = ()


class FailWorkflowExecution(Tagged, frozen=True, kw_only=True):
    failure: Failure


class CancelWorkflowExecution(Tagged, frozen=True, kw_only=True):
    details: Payloads = ()


class ContinueAsNewWorkflowExecution(Tagged, frozen=True, kw_only=True):
    """Makes ``WorkflowExecutionContinuedAsNew`` and the next run. None of a timeout, an empty type or task queue: as
    this run's."""

    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    backoff_start_interval: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    headers: Headers = {}
    memo: Memo | None = None
    """None: as this run's; so are search attributes."""
    search_attributes: Memo | None = None


class UpsertWorkflowSearchAttributes(Tagged, frozen=True, kw_only=True):
    """Makes the event of the same name."""

    search_attributes: Memo = {}


class ModifyWorkflowProperties(Tagged, frozen=True, kw_only=True):
    """Makes ``WorkflowPropertiesModified``."""

    upserted_memo: Memo = {}
