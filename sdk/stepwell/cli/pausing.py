"""``stepwell workflow pause`` and ``unpause``."""

import uuid
from typing import Any

import click

from ..api import operations as o
from ..api import requests as r
from ..api.batches import BatchUnpause
from ..api.common import WorkflowExecution
from ..api.operations import Operation
from .batches import Many, one_or_many, start_batch
from .connection import Engine, Target, identity, run
from .grammar import Command
from .options import run_id_option, target_options, workflow_id_argument
from .output import done


@click.command(cls=Command, spare=("--reason",))
@workflow_id_argument
@click.option("--reason", default="", help="Shown by describe and in the history.")
@run_id_option
@target_options
def pause(target: Target, workflow_id: str, reason: str, run_id: str) -> None:
    """Give nothing of a workflow to workers until it is unpaused."""
    asked = {"reason": reason, **_named(target, workflow_id, run_id)}
    _change(target, workflow_id, o.PAUSE_WORKFLOW, r.PauseWorkflowRequest(**asked), f"Paused {workflow_id}.")


@click.command(cls=Command, spare=("--reason",))
@one_or_many
@click.option("--reason", default="", help="Shown in the history.")
@target_options
def unpause(target: Target, of: WorkflowExecution | Many, reason: str) -> None:
    """Let a paused workflow, or with --query many, go on."""
    if isinstance(of, Many):
        start_batch(target, of, BatchUnpause(), reason, "Unpause")
        return
    workflow_id, run_id = of.workflow_id, of.run_id
    asked = {"reason": reason, **_named(target, workflow_id, run_id)}
    _change(target, workflow_id, o.UNPAUSE_WORKFLOW, r.UnpauseWorkflowRequest(**asked), f"{workflow_id} goes on.")


def _named(target: Target, workflow_id: str, run_id: str) -> dict[str, Any]:
    return {
        "namespace": target.namespace,
        "execution": WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        "identity": identity(),
        "request_id": uuid.uuid4().hex,
    }


def _change(target: Target, workflow_id: str, operation: Operation[Any, Any], request: Any, words: str) -> None:
    async def command(engine: Engine) -> None:
        await engine.call(operation, request)
        done(workflow_id, words, as_json=target.as_json)

    run(target, command)
