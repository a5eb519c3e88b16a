"""``stepwell workflow delete``."""

import click

from ..api import operations as o
from ..api import requests as r
from ..api.batches import BatchDelete
from ..api.common import WorkflowExecution
from .batches import Many, one_or_many, start_batch
from .connection import Engine, Target, identity, run
from .grammar import Command
from .options import target_options
from .output import done


@click.command(cls=Command)
@one_or_many
@target_options
def delete(target: Target, of: WorkflowExecution | Many) -> None:
    """Delete a run, or with --query many, with history and results; one that is running is terminated first."""
    if isinstance(of, Many):
        start_batch(target, of, BatchDelete(), "", "Delete for good")
        return
    request = r.DeleteWorkflowRequest(
        namespace=target.namespace,
        execution=of,
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.DELETE_WORKFLOW, request)
        done(of.workflow_id, f"Deleted {of.workflow_id}.", as_json=target.as_json)

    run(target, command)
