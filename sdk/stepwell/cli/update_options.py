"""``stepwell workflow update-options``: what can be changed of a run that is open."""

import click

from ..api import operations as o
from ..api import requests as r
from ..api.batches import BatchUpdateOptions
from ..api.common import Priority, WorkflowExecution
from ..api.limits import MAX_PRIORITY
from .batches import Many, one_or_many, start_batch
from .connection import Engine, Target, identity, run
from .grammar import Command
from .options import Whole, target_options
from .output import done
from .troubles import Usage


@click.command(cls=Command, name="update-options", spare=("--priority-key",))
@one_or_many
@click.option("--priority-key", type=Whole(1, MAX_PRIORITY), help="1 goes first, 5 last.")
@click.option("--fairness-key", help="Workflows of one priority take turns by this key.")
@click.option("--fairness-weight", type=float, help="Turns of its fairness key, as against 1 (0.001 to 1000).")
@click.option("--restore-priority", is_flag=True, help="Back to the default, in place of the options above.")
@target_options
def update_options(
    target: Target,
    of: WorkflowExecution | Many,
    priority_key: int | None,
    fairness_key: str | None,
    fairness_weight: float | None,
    restore_priority: bool,
) -> None:
    """Change the priority of a workflow, or with --query of many, for the tasks that come; what is left out stays."""
    given = {"priority_key": priority_key, "fairness_key": fairness_key, "fairness_weight": fairness_weight}
    named = {name: value for name, value in given.items() if value is not None}
    if bool(named) == restore_priority:
        raise Usage("give --priority-key, --fairness-key or --fairness-weight, or --restore-priority alone")
    mask = ",".join(f"priority.{name}" for name in named) or "priority"
    priority = Priority(
        priority_key=priority_key or 0, fairness_key=fairness_key or "", fairness_weight=fairness_weight or 0.0
    )
    options = r.WorkflowExecutionOptions(priority=priority if named else None)
    if isinstance(of, Many):
        operation = BatchUpdateOptions(workflow_execution_options=options, update_mask=mask)
        start_batch(target, of, operation, "", "Change")
        return
    request = r.UpdateWorkflowOptionsRequest(
        namespace=target.namespace,
        execution=of,
        workflow_execution_options=options,
        update_mask=mask,
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.UPDATE_WORKFLOW_OPTIONS, request)
        done(of.workflow_id, f"Changed {of.workflow_id}.", as_json=target.as_json)

    run(target, command)
