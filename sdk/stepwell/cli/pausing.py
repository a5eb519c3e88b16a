"""``stepwell workflow pause`` and ``unpause``."""

import uuid

import click

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from .connection import Engine, Target, identity, run
from .options import run_id_option, target_options, workflow_id_argument
from .output import done


@click.command()
@workflow_id_argument
@click.option("--reason", default="", help="Shown in the history.")
@run_id_option
@target_options
def pause(target: Target, workflow_id: str, reason: str, run_id: str) -> None:
    """Give nothing of a workflow to workers until it is unpaused."""
    request = r.PauseWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        reason=reason,
        identity=identity(),
        request_id=uuid.uuid4().hex,
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.PAUSE_WORKFLOW, request)
        done(workflow_id, f"Paused {workflow_id}.", as_json=target.as_json)

    run(target, command)


@click.command()
@workflow_id_argument
@click.option("--reason", default="", help="Shown in the history.")
@run_id_option
@target_options
def unpause(target: Target, workflow_id: str, reason: str, run_id: str) -> None:
    """Let a paused workflow go on."""
    request = r.UnpauseWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        reason=reason,
        identity=identity(),
        request_id=uuid.uuid4().hex,
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.UNPAUSE_WORKFLOW, request)
        done(workflow_id, f"{workflow_id} goes on.", as_json=target.as_json)

    run(target, command)
