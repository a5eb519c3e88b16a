"""Messages that want more than one call: an update, which is waited for, and a start with its first signal."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import click
import msgspec

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.enums import WorkflowIDConflictPolicy, WorkflowUpdateStage
from ..api.limits import POLL_TIMEOUT
from ..api.payloads import Payloads
from .connection import Engine, Target, identity, run
from .inputs import read_inputs, value_of
from .options import DURATION, choice_of, input_options, run_id_option, target_options, workflow_id_argument
from .output import print_json
from .text import failure_tree, safe, value_text
from .troubles import Usage, WorkflowFailed

_STAGES = list(WorkflowUpdateStage)


@click.command()
@workflow_id_argument
@click.option("--name", required=True, help="Name of the update.")
@input_options
@run_id_option
@click.option("--update-id", help="Calls with the same id are one update, with one outcome. Default: a new one.")
@click.option(
    "--wait-for-stage",
    type=choice_of(WorkflowUpdateStage),
    default=WorkflowUpdateStage.COMPLETED.value,
    help="How far it has to come before this command ends.",
)
@click.option("--timeout", type=DURATION, help="How long to wait; the update itself goes on. Default: for ever.")
@target_options
def update(
    target: Target,
    workflow_id: str,
    name: str,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    run_id: str,
    update_id: str | None,
    wait_for_stage: str,
    timeout: timedelta | None,
) -> None:
    """Send an update and print its result as JSON. Exit code 1: it was rejected, or failed."""
    if update_id == "":
        raise Usage("--update-id is empty (an unset variable?); leave it out for a new one")
    request = r.UpdateWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        update_id=update_id or uuid.uuid4().hex,
        update_name=name,
        input=read_inputs(inputs, input_files),
        identity=identity(),
        wait_for_stage=WorkflowUpdateStage(wait_for_stage),
    )

    async def command(engine: Engine) -> None:
        print_update(await sent_update(engine, request, timeout), target)

    run(target, command)


async def sent_update(
    engine: Engine, request: r.UpdateWorkflowRequest, timeout: timedelta | None
) -> r.UpdateWorkflowResponse:
    """Where it is when it has come far enough, or the time is over. The same update each time, by its id."""
    clock = asyncio.get_running_loop().time
    ends = None if timeout is None else clock() + timeout.total_seconds()
    while True:
        wait = POLL_TIMEOUT if ends is None else min(POLL_TIMEOUT, timedelta(seconds=max(ends - clock(), 0)))
        response = await engine.call(o.UPDATE_WORKFLOW, msgspec.structs.replace(request, timeout=wait))
        if _STAGES.index(response.stage) >= _STAGES.index(request.wait_for_stage):
            return response
        if ends is not None and clock() >= ends:
            return response


def print_update(response: r.UpdateWorkflowResponse, target: Target) -> None:
    """The result on standard output, or how far it is; raises :class:`WorkflowFailed` when it failed."""
    outcome = response.outcome
    values = [] if outcome is None else [value_of(payload) for payload in outcome.success]
    if target.as_json:
        said: dict[str, Any] = {"update_id": response.update_id, "run_id": response.run_id, "stage": response.stage}
        if outcome is not None and outcome.failure is None:
            said["result"] = values if len(values) > 1 else values[0] if values else None
        elif outcome is not None:
            said["failure"] = outcome.failure
        print_json(said)
    elif outcome is None:
        click.echo(f"Update {safe(response.update_id)} is {response.stage}.")
    elif outcome.failure is None:
        for payload in outcome.success:
            click.echo(value_text(payload))
        if not outcome.success:
            click.echo("null")
    if outcome is not None and outcome.failure is not None:
        raise WorkflowFailed(f"update {safe(response.update_id)} failed\n{failure_tree(outcome.failure)}")


def signalled(request: r.StartWorkflowRequest, name: str, input: Payloads) -> r.SignalWithStartWorkflowRequest:
    """The start with a signal; the open run gets it, unless it is to be terminated."""
    fields = msgspec.structs.asdict(request)
    if fields["workflow_id_conflict_policy"] == WorkflowIDConflictPolicy.FAIL:
        fields["workflow_id_conflict_policy"] = WorkflowIDConflictPolicy.USE_EXISTING
    return r.SignalWithStartWorkflowRequest(**fields, signal_name=name, signal_input=input)
