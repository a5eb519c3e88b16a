"""``stepwell workflow``: the commands that change something, and the group of all."""

import uuid
from datetime import timedelta
from typing import Any

import click
import msgspec

from ..api import operations as o
from ..api import requests as r
from ..api.common import Priority, RetryPolicy, UserMetadata, WorkflowExecution
from ..api.enums import (
    QueryRejectCondition,
    ResetReapplyExcludeType,
    ResetType,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from ..api.limits import MAX_PRIORITY
from ..api.payloads import Payloads
from ..client.texts import texts
from ..converter import DataConverter
from . import inspection
from .connection import Engine, Target, identity, run
from .inputs import parse_pairs, read_inputs, value_of
from .options import DURATION, choice_of, input_options, run_id_option, target_options, workflow_id_argument
from .output import console, done, key_values, print_json
from .pausing import pause, unpause
from .text import value_text
from .troubles import Usage
from .updates import signalled, update


@click.group()
def workflow() -> None:
    """Start, watch and steer workflows."""


@workflow.command()
@click.option("--type", "workflow_type", required=True, help="Name of the workflow, as its worker registers it.")
@click.option("--task-queue", "-t", required=True, help="Task queue that a worker of this workflow polls.")
@click.option("--workflow-id", "-w", help="Business id, such as order-17; a random one without it.")
@input_options
@click.option("--execution-timeout", type=DURATION, help="Limit of the whole execution, such as 14d.")
@click.option("--run-timeout", type=DURATION, help="Limit of one run.")
@click.option("--task-timeout", type=DURATION, help="Limit of one workflow task (default 10s).")
@click.option(
    "--id-reuse-policy",
    type=choice_of(WorkflowIDReusePolicy),
    default=WorkflowIDReusePolicy.ALLOW_DUPLICATE.value,
    show_default=True,
    help="When the id's last run is closed.",
)
@click.option(
    "--id-conflict-policy",
    type=choice_of(WorkflowIDConflictPolicy),
    default=WorkflowIDConflictPolicy.FAIL.value,
    show_default=True,
    help="When a run of the id is open.",
)
@click.option("--cron", "cron_schedule", default="", help='A run at each such time (UTC), such as "0 12 * * *".')
@click.option("--start-delay", type=DURATION, help="Hold the workflow's code back for this long, or until a message.")
@click.option("--maximum-attempts", type=click.IntRange(min=0), help="Retry a failed run; 0 is without limit.")
@click.option("--retry-interval", type=DURATION, help="Wait before the first retry (default 1s), then doubling.")
@click.option("--priority-key", type=click.IntRange(1, MAX_PRIORITY), help="1 goes first, 5 last (default 3).")
@click.option("--fairness-key", default="", help="Workflows of one priority take turns by this key.")
@click.option("--fairness-weight", type=float, help="Turns of its fairness key, as against 1 (0.001 to 1000).")
@click.option("--request-id", default="", help="Repeats of a start with the same request id start nothing new.")
@click.option("--memo", multiple=True, metavar="NAME=JSON", help="A note kept with the workflow; repeatable.")
@click.option("--static-summary", help="What the run is about, in at most 400 bytes.")
@click.option("--static-details", help="The same at length, in at most 20,000 bytes.")
@click.option("--signal", "signal_name", help="Signal it, and start it only if it is not open.")
@click.option("--signal-input", "signal_inputs", multiple=True, help="Argument of the signal, JSON; may be repeated.")
@target_options
def start(
    target: Target,
    workflow_type: str,
    task_queue: str,
    workflow_id: str | None,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    execution_timeout: timedelta | None,
    run_timeout: timedelta | None,
    task_timeout: timedelta | None,
    id_reuse_policy: str,
    id_conflict_policy: str,
    cron_schedule: str,
    start_delay: timedelta | None,
    maximum_attempts: int | None,
    retry_interval: timedelta | None,
    priority_key: int | None,
    fairness_key: str,
    fairness_weight: float | None,
    request_id: str,
    memo: tuple[str, ...],
    static_summary: str | None,
    static_details: str | None,
    signal_name: str | None,
    signal_inputs: tuple[str, ...],
) -> None:
    """Start a workflow; with --signal, unless it is open, and signal it, in one step."""
    if workflow_id == "":
        raise Usage("--workflow-id is empty (an unset variable?); leave it out for a random one")
    request = r.StartWorkflowRequest(
        namespace=target.namespace,
        workflow_id=workflow_id or str(uuid.uuid4()),
        workflow_type=workflow_type,
        task_queue=task_queue,
        input=read_inputs(inputs, input_files),
        workflow_execution_timeout=execution_timeout,
        workflow_run_timeout=run_timeout,
        workflow_task_timeout=task_timeout,
        workflow_id_reuse_policy=WorkflowIDReusePolicy(id_reuse_policy),
        workflow_id_conflict_policy=WorkflowIDConflictPolicy(id_conflict_policy),
        request_id=request_id or uuid.uuid4().hex,
        identity=identity(),
        memo=parse_pairs(memo, "--memo"),
        cron_schedule=cron_schedule,
        workflow_start_delay=start_delay,
        retry_policy=_retry_policy(maximum_attempts, retry_interval),
        user_metadata=_texts(static_summary, static_details),
        priority=_priority(priority_key, fairness_key, fairness_weight),
    )

    if signal_name == "" or (signal_inputs and signal_name is None):
        raise Usage("--signal needs a name; leave --signal and --signal-input out to start without one")

    async def command(engine: Engine) -> None:
        response: r.StartWorkflowResponse | r.SignalWithStartWorkflowResponse
        if signal_name is None:
            response = await engine.call(o.START_WORKFLOW, request)
        else:
            response = await engine.call(
                o.SIGNAL_WITH_START_WORKFLOW, signalled(request, signal_name, read_inputs(signal_inputs, ()))
            )
        if target.as_json:
            print_json({"workflow_id": request.workflow_id, "run_id": response.run_id, "started": response.started})
            return
        shown = console()
        shown.print("Started." if response.started else "Already started: this is the run that was there.")
        key_values((("Workflow id", request.workflow_id), ("Run id", response.run_id)), shown)

    run(target, command)


def _texts(summary: str | None, details: str | None) -> UserMetadata | None:
    try:
        return texts(DataConverter.default, summary, details)
    except ValueError as error:
        raise Usage(f"--{str(error).replace('_', '-', 1)}") from None


def _priority(key: int | None, fairness_key: str, weight: float | None) -> Priority | None:
    given = Priority(priority_key=key or 0, fairness_key=fairness_key, fairness_weight=weight or 0.0)
    return None if given == Priority() else given


def _retry_policy(maximum_attempts: int | None, interval: timedelta | None) -> RetryPolicy | None:
    """None without either option: then a failure is final."""
    if maximum_attempts is None and interval is None:
        return None
    first = RetryPolicy() if interval is None else RetryPolicy(initial_interval=interval)
    return msgspec.structs.replace(first, maximum_attempts=maximum_attempts or 0)


@workflow.command()
@workflow_id_argument
@click.option("--name", required=True, help="Name of the signal.")
@input_options
@run_id_option
@click.option("--request-id", default="", help="Repeats of a signal with the same request id add nothing.")
@click.option("--idempotency-key", help="Your own key: one signal for each key, in whatever run, while runs are kept.")
@target_options
def signal(
    target: Target,
    workflow_id: str,
    name: str,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    run_id: str,
    request_id: str,
    idempotency_key: str | None,
) -> None:
    """Send a signal. Success means that it is recorded."""
    if idempotency_key == "":
        raise Usage("--idempotency-key is empty (an unset variable?); leave it out for a signal without one")
    request = r.SignalWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        signal_name=name,
        input=read_inputs(inputs, input_files),
        identity=identity(),
        request_id=request_id or uuid.uuid4().hex,
        idempotency_key=idempotency_key or "",
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.SIGNAL_WORKFLOW, request)
        done(workflow_id, f"Signal {name} recorded for {workflow_id}.", as_json=target.as_json)

    run(target, command)


@workflow.command()
@workflow_id_argument
@click.option("--type", "--name", "query_type", required=True, help="Name of the query.")
@input_options
@run_id_option
@click.option("--timeout", type=DURATION, help="How long to wait for a worker's answer (default and limit 10s).")
@click.option(
    "--reject-condition",
    type=choice_of(QueryRejectCondition),
    default=QueryRejectCondition.NONE.value,
    help="Refuse to ask a run of this kind.",
)
@target_options
def query(
    target: Target,
    workflow_id: str,
    query_type: str,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    run_id: str,
    timeout: timedelta | None,
    reject_condition: str,
) -> None:
    """Ask a workflow; print the answer as JSON."""
    request = r.QueryWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        query_type=query_type,
        query_args=read_inputs(inputs, input_files),
        query_reject_condition=QueryRejectCondition(reject_condition),
        timeout=timeout,
    )

    async def command(engine: Engine) -> None:
        response = await engine.call(o.QUERY_WORKFLOW, request)
        print_values(response.result, target)

    run(target, command)


@workflow.command()
@workflow_id_argument
@click.option("--reason", default="", help="Shown in the history.")
@run_id_option
@target_options
def cancel(target: Target, workflow_id: str, reason: str, run_id: str) -> None:
    """Ask a workflow to cancel itself; it may clean up first."""
    request = r.CancelWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        reason=reason,
        identity=identity(),
        request_id=uuid.uuid4().hex,
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.CANCEL_WORKFLOW, request)
        done(workflow_id, f"Cancellation of {workflow_id} requested.", as_json=target.as_json)

    run(target, command)


@workflow.command()
@workflow_id_argument
@click.option("--reason", default="", help="Shown in the history.")
@run_id_option
@target_options
def terminate(target: Target, workflow_id: str, reason: str, run_id: str) -> None:
    """End a workflow at once; its code gets no say."""
    request = r.TerminateWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        reason=reason,
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.TERMINATE_WORKFLOW, request)
        done(workflow_id, f"Terminated {workflow_id}.", as_json=target.as_json)

    run(target, command)


@workflow.command(short_help="Go back to an earlier workflow task.")
@workflow_id_argument
@click.option("--event-id", type=int, help="Event that started or closed the workflow task to do anew.")
@click.option(
    "--type",
    "reset_type",
    type=choice_of(ResetType),
    help=f"In place of an event (default {ResetType.LAST_WORKFLOW_TASK.value}).",
)
@click.option("--build-id", help="With type BUILD_ID: go back to the first task that this build completed.")
@click.option("--current-run-only", is_flag=True, help="With type BUILD_ID: not to a run before in the chain.")
@click.option(
    "--reapply-exclude",
    "excluded",
    type=choice_of(ResetReapplyExcludeType),
    multiple=True,
    help="Messages of this kind, of those that came in since, do not come in again; repeatable.",
)
@click.option("--reason", default="", help="Shown in the history.")
@run_id_option
@click.option("--signal", "signal_name", help="A signal that the new run gets before its first workflow task.")
@input_options
@click.option("--request-id", default="", help="Repeats of a reset with the same request id make no further run.")
@target_options
def reset(
    target: Target,
    workflow_id: str,
    event_id: int | None,
    reset_type: str | None,
    build_id: str | None,
    current_run_only: bool,
    excluded: tuple[str, ...],
    reason: str,
    run_id: str,
    signal_name: str | None,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    request_id: str,
) -> None:
    """Go back to an earlier workflow task and on from there, as a new run; the current run is terminated."""
    if build_id == "":
        raise Usage("--build-id is empty (an unset variable?); leave it out to go back to another point")
    if event_id is None and reset_type is None:
        reset_type = ResetType.BUILD_ID.value if build_id else ResetType.LAST_WORKFLOW_TASK.value
    operations: tuple[r.PostResetOperation, ...] = ()
    if signal_name is not None:
        given = r.PostResetSignal(signal_name=signal_name, input=read_inputs(inputs, input_files))
        operations = (r.PostResetOperation(signal_workflow=given),)
    elif inputs or input_files:
        raise Usage("--input is for the signal; name that with --signal")
    request = r.ResetWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        workflow_task_finish_event_id=event_id or 0,
        reset_type=None if reset_type is None else ResetType(reset_type),
        build_id=build_id or "",
        current_run_only=current_run_only,
        reset_reapply_exclude_types=tuple(ResetReapplyExcludeType(kind) for kind in excluded),
        reason=reason,
        identity=identity(),
        request_id=request_id or uuid.uuid4().hex,
        post_reset_operations=operations,
    )

    async def command(engine: Engine) -> None:
        response = await engine.call(o.RESET_WORKFLOW, request)
        if target.as_json:
            print_json({"workflow_id": workflow_id, "run_id": response.run_id})
            return
        shown = console()
        shown.print("Reset: this run goes on from there.")
        key_values((("Workflow id", workflow_id), ("Run id", response.run_id)), shown)

    run(target, command)


def print_values(payloads: Payloads, target: Target) -> None:
    """A result or an answer: the one value, as JSON; all of them in an array when there are several."""
    if target.as_json:
        values: list[Any] = [value_of(payload) for payload in payloads]
        print_json(values if len(values) > 1 else values[0] if values else None)
        return
    for payload in payloads:
        click.echo(value_text(payload))
    if not payloads:
        click.echo("null")


for _command in (inspection.list_, inspection.describe, inspection.show, inspection.result, update, pause, unpause):
    workflow.add_command(_command)
