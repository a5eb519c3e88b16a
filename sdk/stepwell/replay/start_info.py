"""What a run's first event tells its code: ``workflow.info()``."""

from datetime import datetime

from ..api.events import WorkflowExecutionStarted
from ..common import Priority, RetryPolicy
from ..workflow.info import Info, ParentInfo, RootInfo


def start_info(
    started: WorkflowExecutionStarted, *, namespace: str, workflow_id: str, run_id: str, start_time: datetime
) -> Info:
    """What does not change while the run is open."""
    policy = started.retry_policy
    parent, root = started.parent_workflow_execution, started.root_workflow_execution
    return Info(
        attempt=started.attempt,
        continued_run_id=started.continued_execution_run_id or None,
        cron_schedule=started.cron_schedule or None,
        execution_timeout=started.workflow_execution_timeout,
        first_execution_run_id=started.first_execution_run_id,
        headers=started.headers,
        namespace=namespace,
        original_execution_run_id=started.original_execution_run_id,
        raw_memo=started.memo,
        priority=Priority.from_record(started.priority),
        retry_policy=None if policy is None else RetryPolicy.from_record(policy),
        run_id=run_id,
        run_timeout=started.workflow_run_timeout,
        start_time=start_time,
        task_queue=started.task_queue,
        task_timeout=started.workflow_task_timeout,
        workflow_id=workflow_id,
        workflow_type=started.workflow_type,
        parent=None
        if parent is None
        else ParentInfo(
            namespace=started.parent_workflow_namespace, run_id=parent.run_id, workflow_id=parent.workflow_id
        ),
        root=None if root is None else RootInfo(run_id=root.run_id, workflow_id=root.workflow_id),
    )
