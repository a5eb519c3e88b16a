"""``stepwell workflow delete``."""

import click

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from .connection import Engine, Target, identity, run
from .grammar import Command
from .options import run_id_option, target_options, workflow_id_argument
from .output import done


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@target_options
def delete(target: Target, workflow_id: str, run_id: str) -> None:
    """Delete a run, its history and its results; one that is running is terminated first."""
    request = r.DeleteWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.DELETE_WORKFLOW, request)
        done(workflow_id, f"Deleted {workflow_id}.", as_json=target.as_json)

    run(target, command)
