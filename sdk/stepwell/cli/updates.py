"""Messages that want more than one call: an update, which is waited for, and a start with its first signal."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import click
import msgspec

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.enums import WorkflowIDConflictPolicy, WorkflowUpdateStage
from ..api.limits import POLL_TIMEOUT
from ..api.payloads import Payloads
from ..api.updates import UpdateOutcome
from ..client.pacing import LONGEST_PAUSE, Pace
from .connection import Engine, Target, identity, run
from .grammar import Command
from .inputs import read_inputs, value_of
from .options import (
    DURATION,
    choice_of,
    in_place_of,
    input_options,
    run_id_option,
    target_options,
    workflow_id_argument,
)
from .output import print_json
from .text import failure_tree, safe, value_text
from .troubles import Usage, WorkflowFailed

_STAGES = list(WorkflowUpdateStage)


F = TypeVar("F", bound=Callable[..., Any])


class _Reached(Protocol):
    """What both an update and one with a start answer."""

    @property
    def run_id(self) -> str: ...
    @property
    def update_id(self) -> str: ...
    @property
    def stage(self) -> WorkflowUpdateStage: ...
    @property
    def outcome(self) -> UpdateOutcome | None: ...


R = TypeVar("R", bound=_Reached)


def stage_options(command: F) -> F:
    """``--update-id``, a new one by default, ``--wait-for-stage`` and ``--timeout``."""

    def wrapped(*args: Any, update_id: str | None, wait_for_stage: str, **kwargs: Any) -> Any:
        if update_id == "":
            raise Usage("--update-id is empty (an unset variable?); leave it out for a new one")
        return command(
            *args,
            update_id=update_id or uuid.uuid4().hex,
            wait_for_stage=WorkflowUpdateStage(wait_for_stage),
            **kwargs,
        )

    made = in_place_of(command, wrapped)
    for option in (
        _TIMEOUT,
        click.option(
            "--wait-for-stage",
            type=choice_of(WorkflowUpdateStage),
            default=WorkflowUpdateStage.COMPLETED.value,
            show_default=True,
            help="How far it has to come before this command ends.",
        ),
        click.option("--update-id", help="Calls with the same id are one update, with one outcome. Else a new one."),
    ):
        made = option(made)
    return made


_TIMEOUT = click.option(
    "--timeout", type=DURATION, help="How long to wait; the update itself goes on. Default: for ever."
)


@click.command(cls=Command, spare=("--name", "--input"))
@workflow_id_argument
@click.option("--name", required=True, help="Name of the update.")
@input_options
@run_id_option
@stage_options
@target_options
def update(
    target: Target,
    workflow_id: str,
    name: str,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    run_id: str,
    update_id: str,
    wait_for_stage: WorkflowUpdateStage,
    timeout: timedelta | None,
) -> None:
    """Send an update and print its result as JSON. Exit code 1: it was rejected, or failed."""
    request = r.UpdateWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        update_id=update_id,
        update_name=name,
        input=read_inputs(inputs, input_files),
        identity=identity(),
        wait_for_stage=wait_for_stage,
    )

    async def command(engine: Engine) -> None:
        async def ask(wait: timedelta) -> r.UpdateWorkflowResponse:
            return await engine.call(o.UPDATE_WORKFLOW, msgspec.structs.replace(request, timeout=wait))

        print_update(await sent_update(ask, wait_for_stage, timeout), target)

    run(target, command)


@click.command(cls=Command, name="update-result", spare=("--update-id",))
@workflow_id_argument
@click.option("--update-id", required=True, help="Id of the update, as `update` printed it.")
@run_id_option
@_TIMEOUT
@target_options
def update_result(target: Target, workflow_id: str, update_id: str, run_id: str, timeout: timedelta | None) -> None:
    """Wait for an update that was sent before; print its result as JSON. With --timeout 0s: how far it is.

    Exit code 1: it failed. One that was rejected is not remembered.
    """
    request = r.PollWorkflowUpdateRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        update_id=update_id,
    )

    async def command(engine: Engine) -> None:
        async def ask(wait: timedelta) -> r.PollWorkflowUpdateResponse:
            return await engine.call(o.POLL_WORKFLOW_UPDATE, msgspec.structs.replace(request, timeout=wait))

        print_update(await sent_update(ask, WorkflowUpdateStage.COMPLETED, timeout), target)

    run(target, command)


async def sent_update(
    ask: Callable[[timedelta], Awaitable[R]], wanted: WorkflowUpdateStage, timeout: timedelta | None
) -> R:
    """Where it is when it has come far enough, or the time is over. ``ask`` is about the same update each time."""
    clock = asyncio.get_running_loop().time
    ends = None if timeout is None else clock() + timeout.total_seconds()
    pace = Pace()
    while True:
        wait = POLL_TIMEOUT if ends is None else min(POLL_TIMEOUT, timedelta(seconds=max(ends - clock(), 0)))
        pace.asking()
        response = await ask(wait)
        if _STAGES.index(response.stage) >= _STAGES.index(wanted):
            return response
        if ends is not None and clock() >= ends:
            return response
        await pace.came_empty(LONGEST_PAUSE if ends is None else ends - clock())


def print_update(response: _Reached, target: Target) -> None:
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
