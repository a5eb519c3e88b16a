"""``stepwell workflow``: the commands that change something, and the group of all."""

import uuid

import click

from ..api import operations as o
from ..api import requests as r
from ..api.batches import BatchCancel, BatchReset, BatchSignal, BatchTerminate
from ..api.common import WorkflowExecution
from ..api.enums import ResetReapplyExcludeType, ResetType
from .asking import metadata, query, stack
from .batches import Many, one_or_many, start_batch
from .connection import Engine, Target, identity, run
from .counting import count
from .deleting import delete
from .grammar import Group
from .history_json import fix_history_json
from .importing import import_
from .inputs import read_inputs
from .inspection import describe, list_, show
from .options import choice_of, input_options, target_options
from .output import console, done, key_values, print_json
from .pausing import pause, unpause
from .scanning import scan
from .starting import execute, signal_with_start, start, update_with_start
from .timeline import timeline, trace
from .troubles import Usage
from .update_options import update_options
from .updates import update, update_result
from .waiting import result


@click.group(cls=Group)
def workflow() -> None:
    """Start, watch and steer workflows."""


@workflow.command(spare=("--name", "--input"))
@one_or_many
@click.option("--name", required=True, help="Name of the signal.")
@input_options
@click.option("--request-id", default="", help="Repeats of a signal with the same request id add nothing.")
@click.option("--idempotency-key", help="Your own key: one signal for each key, in whatever run, while runs are kept.")
@target_options
def signal(
    target: Target,
    of: WorkflowExecution | Many,
    name: str,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    request_id: str,
    idempotency_key: str | None,
) -> None:
    """Send a signal to a workflow, or with --query to many. Success means that it is recorded."""
    if idempotency_key == "":
        raise Usage("--idempotency-key is empty (an unset variable?); leave it out for a signal without one")
    if isinstance(of, Many):
        if request_id or idempotency_key:
            raise Usage("--request-id and --idempotency-key are for one workflow; --job-id is for a batch")
        start_batch(target, of, BatchSignal(signal_name=name, input=read_inputs(inputs, input_files)), "", "Signal")
        return
    request = r.SignalWorkflowRequest(
        namespace=target.namespace,
        execution=of,
        signal_name=name,
        input=read_inputs(inputs, input_files),
        identity=identity(),
        request_id=request_id or uuid.uuid4().hex,
        idempotency_key=idempotency_key or "",
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.SIGNAL_WORKFLOW, request)
        done(of.workflow_id, f"Signal {name} recorded for {of.workflow_id}.", as_json=target.as_json)

    run(target, command)


@workflow.command(spare=("--reason",))
@one_or_many
@click.option("--reason", default="", help="Shown in the history.")
@target_options
def cancel(target: Target, of: WorkflowExecution | Many, reason: str) -> None:
    """Ask a workflow, or with --query many, to cancel itself; it may clean up first."""
    if isinstance(of, Many):
        start_batch(target, of, BatchCancel(), reason, "Cancel")
        return
    request = r.CancelWorkflowRequest(
        namespace=target.namespace,
        execution=of,
        reason=reason,
        identity=identity(),
        request_id=uuid.uuid4().hex,
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.CANCEL_WORKFLOW, request)
        done(of.workflow_id, f"Cancellation of {of.workflow_id} requested.", as_json=target.as_json)

    run(target, command)


@workflow.command(spare=("--reason",))
@one_or_many
@click.option("--reason", default="", help="Shown in the history.")
@target_options
def terminate(target: Target, of: WorkflowExecution | Many, reason: str) -> None:
    """End a workflow, or with --query many, at once; its code gets no say."""
    if isinstance(of, Many):
        start_batch(target, of, BatchTerminate(), reason, "Terminate")
        return
    request = r.TerminateWorkflowRequest(
        namespace=target.namespace,
        execution=of,
        reason=reason,
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.TERMINATE_WORKFLOW, request)
        done(of.workflow_id, f"Terminated {of.workflow_id}.", as_json=target.as_json)

    run(target, command)


@workflow.command(short_help="Go back to an earlier workflow task.", spare=("--event-id", "--reason"))
@one_or_many
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
@click.option("--signal", "signal_name", help="A signal that the new run gets before its first workflow task.")
@input_options
@click.option("--request-id", default="", help="Repeats of a reset with the same request id make no further run.")
@target_options
def reset(
    target: Target,
    of: WorkflowExecution | Many,
    event_id: int | None,
    reset_type: str | None,
    build_id: str | None,
    current_run_only: bool,
    excluded: tuple[str, ...],
    reason: str,
    signal_name: str | None,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    request_id: str,
) -> None:
    """Go back to an earlier workflow task and on from there, as a new run; the current run is terminated.

    With --query: in all workflows that it finds.
    """
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
    exclude = tuple(ResetReapplyExcludeType(kind) for kind in excluded)
    if isinstance(of, Many):
        if event_id is not None or request_id or reset_type is None:
            raise Usage("--event-id and --request-id are for one workflow; leave them out")
        operation = BatchReset(
            reset_type=ResetType(reset_type),
            build_id=build_id or "",
            current_run_only=current_run_only,
            reset_reapply_exclude_types=exclude,
            post_reset_operations=operations,
        )
        start_batch(target, of, operation, reason, "Reset")
        return
    request = r.ResetWorkflowRequest(
        namespace=target.namespace,
        execution=of,
        workflow_task_finish_event_id=event_id or 0,
        reset_type=None if reset_type is None else ResetType(reset_type),
        build_id=build_id or "",
        current_run_only=current_run_only,
        reset_reapply_exclude_types=exclude,
        reason=reason,
        identity=identity(),
        request_id=request_id or uuid.uuid4().hex,
        post_reset_operations=operations,
    )

    async def command(engine: Engine) -> None:
        response = await engine.call(o.RESET_WORKFLOW, request)
        if target.as_json:
            print_json({"workflow_id": of.workflow_id, "run_id": response.run_id})
            return
        shown = console()
        shown.print("Reset: this run goes on from there.")
        key_values((("Workflow id", of.workflow_id), ("Run id", response.run_id)), shown)

    run(target, command)


for _command in (
    start,
    execute,
    signal_with_start,
    update_with_start,
    list_,
    scan,
    count,
    describe,
    show,
    timeline,
    trace,
    result,
    query,
    stack,
    metadata,
    update,
    update_result,
    update_options,
    pause,
    unpause,
    delete,
    import_,
    fix_history_json,
):
    workflow.add_command(_command)
