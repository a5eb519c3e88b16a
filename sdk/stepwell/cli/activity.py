"""``stepwell activity``: end an activity from outside, and steer those that are pending (AC-21, AC-25)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.failures import ApplicationFailureInfo, Failure
from ..api.operations import Operation
from .connection import Engine, Target, identity, run
from .grammar import Group
from .inputs import read_inputs
from .options import DURATION, input_options, run_id_option, target_options, workflow_id_argument
from .output import print_json
from .text import safe
from .troubles import Usage

F = TypeVar("F", bound=Callable[..., Any])
Req = TypeVar("Req")


@click.group(cls=Group)
def activity() -> None:
    """Start and follow activities without a workflow; finish, pause, reset and change any that are pending."""


def _one(command: F) -> F:
    """One activity of the workflow that waits for it; without a workflow id a stand-alone one."""
    activity_id = click.option("--activity-id", "-a", required=True, help="As workflow describe shows it.")
    return workflow_id_argument(activity_id(run_id_option(command)), required=False)


def _some(command: F) -> F:
    """One activity or all of a type, of a workflow; without a workflow id a stand-alone one."""
    activity_id = click.option("--activity-id", "-a", default="", help="One activity, as workflow describe shows it.")
    activity_type = click.option("--type", "activity_type", default="", help="All pending activities of this type.")
    return workflow_id_argument(activity_id(activity_type(run_id_option(command))), required=False)


@activity.command(spare=("--activity-id",))
@_one
@input_options
@target_options
def complete(
    target: Target,
    workflow_id: str,
    activity_id: str,
    run_id: str,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
) -> None:
    """Complete an activity; --input is its result, null without it."""
    values = read_inputs(inputs, input_files)
    if len(values) > 1:
        raise Usage(f"an activity has one result, and these are {len(values)}; put them into an array")
    _end(target, workflow_id, activity_id, run_id, r.ActivityCompleted(task_token=b"", result=values), "Completed")


@activity.command(spare=("--activity-id",))
@_one
@click.option("--reason", required=True, help="The failure's message.")
@click.option("--error-type", default="", help="The failure's type, which the retry policy may name.")
@click.option("--non-retryable", is_flag=True, help="The activity fails for good, whatever its retry policy.")
@input_options
@target_options
def fail(
    target: Target,
    workflow_id: str,
    activity_id: str,
    run_id: str,
    reason: str,
    error_type: str,
    non_retryable: bool,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
) -> None:
    """Fail the attempt that runs; --input are details of the failure."""
    info = ApplicationFailureInfo(
        failure_type=error_type, non_retryable=non_retryable, details=read_inputs(inputs, input_files)
    )
    outcome = r.ActivityFailed(task_token=b"", failure=Failure(message=reason, info=info))
    _end(target, workflow_id, activity_id, run_id, outcome, "Failed the attempt of")


@activity.command(spare=("--activity-id",))
@_some
@click.option("--reason", default="", help="Shown by workflow describe.")
@target_options
def pause(target: Target, workflow_id: str, activity_id: str, activity_type: str, run_id: str, reason: str) -> None:
    """Begin no further attempt until unpause. One that runs may end."""
    named = _named(target, workflow_id, activity_id, activity_type, run_id)
    _change(target, workflow_id, o.PAUSE_ACTIVITY, r.PauseActivityRequest(**named, reason=reason), "Paused")


@activity.command(spare=("--activity-id",))
@_some
@click.option("--reset-attempts", is_flag=True, help="Go on with attempt 1.")
@click.option("--reset-heartbeat", is_flag=True, help="Forget the progress that was reported.")
@click.option("--jitter", type=DURATION, help="Start within this time, each at a random moment.")
@target_options
def unpause(
    target: Target,
    workflow_id: str,
    activity_id: str,
    activity_type: str,
    run_id: str,
    reset_attempts: bool,
    reset_heartbeat: bool,
    jitter: timedelta | None,
) -> None:
    """Go on with what was paused, at once."""
    request = r.UnpauseActivityRequest(
        **_named(target, workflow_id, activity_id, activity_type, run_id),
        reset_attempts=reset_attempts,
        reset_heartbeat=reset_heartbeat,
        jitter=jitter,
    )
    _change(target, workflow_id, o.UNPAUSE_ACTIVITY, request, "Unpaused")


@activity.command(spare=("--activity-id",))
@_some
@click.option("--keep-paused", is_flag=True, help="A paused activity stays paused.")
@click.option("--reset-heartbeat", is_flag=True, help="Forget the progress that was reported.")
@click.option("--restore-original-options", is_flag=True, help="Back to the options that the workflow asked for.")
@click.option("--jitter", type=DURATION, help="Start within this time, each at a random moment.")
@target_options
def reset(
    target: Target,
    workflow_id: str,
    activity_id: str,
    activity_type: str,
    run_id: str,
    keep_paused: bool,
    reset_heartbeat: bool,
    restore_original_options: bool,
    jitter: timedelta | None,
) -> None:
    """Begin anew with attempt 1."""
    request = r.ResetActivityRequest(
        **_named(target, workflow_id, activity_id, activity_type, run_id),
        keep_paused=keep_paused,
        reset_heartbeat=reset_heartbeat,
        restore_original_options=restore_original_options,
        jitter=jitter,
    )
    _change(target, workflow_id, o.RESET_ACTIVITY, request, "Reset")


@activity.command("update-options", spare=("--activity-id",))
@_some
@click.option("--task-queue", "-t", default="", help="Where further attempts wait.")
@click.option("--schedule-to-close-timeout", type=DURATION)
@click.option("--schedule-to-start-timeout", type=DURATION)
@click.option("--start-to-close-timeout", type=DURATION)
@click.option("--heartbeat-timeout", type=DURATION)
@click.option("--retry-initial-interval", type=DURATION)
@click.option("--retry-backoff-coefficient", type=float)
@click.option("--retry-maximum-interval", type=DURATION)
@click.option("--retry-maximum-attempts", type=int, help="0 is without limit.")
@click.option("--restore-original", is_flag=True, help="First go back to the options that the workflow asked for.")
@target_options
def update_options(
    target: Target, workflow_id: str, activity_id: str, activity_type: str, run_id: str, **options: Any
) -> None:
    """Change timeouts, retries or the task queue; what is left out stays as it is."""
    request = r.UpdateActivityOptionsRequest(
        **_named(target, workflow_id, activity_id, activity_type, run_id), options=r.ActivityOptionsChange(**options)
    )
    _change(target, workflow_id, o.UPDATE_ACTIVITY_OPTIONS, request, "Changed")


def _named(target: Target, workflow_id: str, activity_id: str, activity_type: str, run_id: str) -> dict[str, Any]:
    if bool(activity_id) == bool(activity_type):
        raise Usage("give either --activity-id, or --type for all pending activities of a type")
    return {
        "namespace": target.namespace,
        "execution": WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        "activity_id": activity_id,
        "activity_type": activity_type,
        "identity": identity(),
    }


def _end(
    target: Target, workflow_id: str, activity_id: str, run_id: str, outcome: r.ActivityOutcome, done: str
) -> None:
    request = r.RespondActivityByIdRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        activity_id=activity_id,
        outcome=outcome,
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        await engine.call(_of(o.RESPOND_ACTIVITY_BY_ID, workflow_id), request)
        _say(target, workflow_id, (activity_id,), done)

    run(target, command)


def _change(
    target: Target, workflow_id: str, operation: Operation[Req, r.ActivitiesChangedResponse], request: Req, done: str
) -> None:
    async def command(engine: Engine) -> None:
        response = await engine.call(_of(operation, workflow_id), request)
        _say(target, workflow_id, response.activity_ids, done)

    run(target, command)


def _say(target: Target, workflow_id: str, activity_ids: tuple[str, ...], done: str) -> None:
    if target.as_json:
        print_json({"workflow_id": workflow_id, "activity_ids": list(activity_ids)})
        return
    what = f"activity {activity_ids[0]}" if len(activity_ids) == 1 else f"{len(activity_ids)} activities"
    click.echo(safe(f"{done} {what} of {workflow_id}." if workflow_id else f"{done} {what}."))


def _of(operation: Operation[Any, Any], workflow_id: str) -> Operation[Any, Any]:
    return operation if workflow_id else _STANDALONE[operation]


_STANDALONE: dict[Operation[Any, Any], Operation[Any, Any]] = {
    o.RESPOND_ACTIVITY_BY_ID: o.COMPLETE_STANDALONE_ACTIVITY,
    o.PAUSE_ACTIVITY: o.PAUSE_STANDALONE_ACTIVITY,
    o.UNPAUSE_ACTIVITY: o.UNPAUSE_STANDALONE_ACTIVITY,
    o.RESET_ACTIVITY: o.RESET_STANDALONE_ACTIVITY,
    o.UPDATE_ACTIVITY_OPTIONS: o.UPDATE_STANDALONE_ACTIVITY_OPTIONS,
}
"""The same of an activity that has no workflow."""
