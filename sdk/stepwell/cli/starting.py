"""``stepwell workflow start | execute | signal-with-start | update-with-start``: all that a start may say, once."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import click
import msgspec

from ..api import operations as o
from ..api import requests as r
from ..api.callbacks import Callback
from ..api.common import Priority, RetryPolicy, UserMetadata, WorkflowExecution
from ..api.enums import DeduplicationPolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy, WorkflowUpdateStage
from ..api.limits import MAX_PRIORITY
from ..client.texts import texts
from ..converter import DataConverter
from .connection import Engine, Target, identity, run
from .grammar import Command
from .inputs import parse_attributes, parse_pairs, read_inputs
from .options import DURATION, Whole, choice_of, in_place_of, input_options, target_options
from .outcome import print_end
from .output import console, key_values, print_json
from .text import safe
from .troubles import Usage
from .updates import print_update, sent_update, signalled, stage_options
from .waiting import ended

F = TypeVar("F", bound=Callable[..., Any])
Asked = partial[r.StartWorkflowRequest]
"""Makes the request, once it is told the target; ``keywords`` are the options as they were given."""


_SPARE = ("--workflow-id", "--input")


def _options(*, required: bool) -> dict[str, Callable[[Any], Any]]:
    """By the names under which commands get them."""
    return {
        "workflow_type": click.option(
            "--type", "workflow_type", required=required, help="Name of the workflow, as its worker registers it."
        ),
        "task_queue": click.option(
            "--task-queue", "-t", required=required, help="Task queue that a worker of this workflow polls."
        ),
        "workflow_id": click.option(
            "--workflow-id", "-w", help="Business id, such as order-17; a random one without it."
        ),
        "inputs": input_options,
        "execution_timeout": click.option(
            "--execution-timeout", type=DURATION, help="Limit of the whole execution, such as 14d."
        ),
        "run_timeout": click.option("--run-timeout", type=DURATION, help="Limit of one run."),
        "task_timeout": click.option("--task-timeout", type=DURATION, help="Limit of one workflow task (default 10s)."),
        "id_reuse_policy": click.option(
            "--id-reuse-policy",
            type=choice_of(WorkflowIDReusePolicy),
            default=WorkflowIDReusePolicy.ALLOW_DUPLICATE.value,
            show_default=True,
            help="When the id's last run is closed.",
        ),
        "cron_schedule": click.option(
            "--cron", "cron_schedule", default="", help='A run at each such time (UTC), such as "0 12 * * *".'
        ),
        "start_delay": click.option(
            "--start-delay", type=DURATION, help="Hold the workflow's code back so long, or until a message."
        ),
        "maximum_attempts": click.option(
            "--maximum-attempts", type=Whole(min=0), help="Retry a failed run; 0 is without limit."
        ),
        "retry_interval": click.option(
            "--retry-interval", type=DURATION, help="Wait before the first retry (default 1s), then doubling."
        ),
        "priority_key": click.option(
            "--priority-key", type=Whole(1, MAX_PRIORITY), help="1 goes first, 5 last (default 3)."
        ),
        "fairness_key": click.option(
            "--fairness-key", default="", help="Workflows of one priority take turns by this key."
        ),
        "fairness_weight": click.option(
            "--fairness-weight", type=float, help="Turns of its fairness key, as against 1 (0.001 to 1000)."
        ),
        "request_id": click.option(
            "--request-id", default="", help="Repeats of a start with the same request id start nothing new."
        ),
        "dedup_key": click.option(
            "--dedup-key", help="Of the starts with one such key, whatever their workflow ids, one counts."
        ),
        "dedup_policy": click.option(
            "--dedup-policy",
            type=choice_of(DeduplicationPolicy),
            default=DeduplicationPolicy.FAIL.value,
            show_default=True,
            help="When another workflow has the key.",
        ),
        "dedup_ttl": click.option(
            "--dedup-ttl", type=DURATION, help="Hold the key so long behind its last start, not until the end."
        ),
        "callbacks": click.option(
            "--callback",
            "callbacks",
            multiple=True,
            metavar="URL",
            help="POST to it how the workflow ended; repeatable.",
        ),
        "memo": click.option(
            "--memo", multiple=True, metavar="NAME=JSON", help="A note kept with the workflow; repeatable."
        ),
        "attributes": click.option(
            "--search-attribute",
            "attributes",
            multiple=True,
            metavar="NAME=JSON",
            help="What it is found by, such as City='\"Rome\"'; NAME:Text=JSON for another type. Repeatable.",
        ),
        "static_summary": click.option("--static-summary", help="What the run is about, in at most 400 bytes."),
        "static_details": click.option("--static-details", help="The same at length, in at most 20,000 bytes."),
    }


def start_options(conflict: WorkflowIDConflictPolicy) -> Callable[[F], F]:
    """All options of a start, given to the command as ``asked``, which makes the request. ``conflict``: what the
    policy for an open run is unless it is said."""
    conflict_option = click.option(
        "--id-conflict-policy",
        type=choice_of(WorkflowIDConflictPolicy),
        default=conflict.value,
        show_default=True,
        help="When a run of the id is open.",
    )
    return _with({**_options(required=True), "id_conflict_policy": conflict_option})


_NOT_IN_ACTIONS = (
    "id_reuse_policy",
    "cron_schedule",
    "start_delay",
    "request_id",
    "dedup_key",
    "dedup_policy",
    "dedup_ttl",
    "callbacks",
)


def action_options(*, required: bool) -> Callable[[F], F]:
    """Those of a start that a schedule may have. ``required``: type and task queue have to be given."""
    options = _options(required=required)
    for name in _NOT_IN_ACTIONS:
        del options[name]
    options["workflow_id"] = click.option(
        "--workflow-id", "-w", help="The time is put behind it (default: the schedule's id)."
    )
    return _with(options)


def _with(options: dict[str, Callable[[Any], Any]]) -> Callable[[F], F]:
    names = {*options, "input_files"}

    def decorate(command: F) -> F:
        def wrapped(**given: Any) -> Any:
            taken = {name: given.pop(name) for name in names & given.keys()}
            return command(asked=partial(_request, **taken), **given)

        made = in_place_of(command, wrapped)
        for option in reversed(options.values()):
            made = option(made)
        return made

    return decorate


def _request(
    target: Target,
    *,
    workflow_type: str | None,
    task_queue: str | None,
    workflow_id: str | None,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    execution_timeout: timedelta | None,
    run_timeout: timedelta | None,
    task_timeout: timedelta | None,
    maximum_attempts: int | None,
    retry_interval: timedelta | None,
    priority_key: int | None,
    fairness_key: str,
    fairness_weight: float | None,
    memo: tuple[str, ...],
    attributes: tuple[str, ...],
    static_summary: str | None,
    static_details: str | None,
    id_reuse_policy: str = WorkflowIDReusePolicy.ALLOW_DUPLICATE.value,
    id_conflict_policy: str = WorkflowIDConflictPolicy.FAIL.value,
    cron_schedule: str = "",
    start_delay: timedelta | None = None,
    request_id: str = "",
    dedup_key: str | None = None,
    dedup_policy: str = DeduplicationPolicy.FAIL.value,
    dedup_ttl: timedelta | None = None,
    callbacks: tuple[str, ...] = (),
) -> r.StartWorkflowRequest:
    if workflow_id == "":
        raise Usage("--workflow-id is empty (an unset variable?); leave it out for a random one")
    return r.StartWorkflowRequest(
        namespace=target.namespace,
        workflow_id=workflow_id or str(uuid.uuid4()),
        workflow_type=workflow_type or "",
        task_queue=task_queue or "",
        input=read_inputs(inputs, input_files),
        workflow_execution_timeout=execution_timeout,
        workflow_run_timeout=run_timeout,
        workflow_task_timeout=task_timeout,
        workflow_id_reuse_policy=WorkflowIDReusePolicy(id_reuse_policy),
        workflow_id_conflict_policy=WorkflowIDConflictPolicy(id_conflict_policy),
        request_id=request_id or uuid.uuid4().hex,
        identity=identity(),
        memo=parse_pairs(memo, "--memo"),
        search_attributes=parse_attributes(attributes, "--search-attribute"),
        cron_schedule=cron_schedule,
        workflow_start_delay=start_delay,
        completion_callbacks=tuple([Callback(url=url) for url in callbacks]),
        on_conflict_options=_ATTACH if callbacks else None,
        deduplication=_deduplication(dedup_key, dedup_policy, dedup_ttl),
        retry_policy=_retry_policy(maximum_attempts, retry_interval),
        user_metadata=_texts(static_summary, static_details),
        priority=_priority(priority_key, fairness_key, fairness_weight),
    )


_ATTACH = r.OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True)
"""For an open run that the start meets: it tells the callbacks too."""


def _deduplication(key: str | None, policy: str, ttl: timedelta | None) -> r.Deduplication | None:
    if key == "":
        raise Usage("--dedup-key is empty (an unset variable?); leave it out for a start without one")
    if key is None and (ttl is not None or policy != DeduplicationPolicy.FAIL):
        raise Usage("--dedup-policy and --dedup-ttl are for a --dedup-key; give one, or leave them out")
    return None if key is None else r.Deduplication(key=key, policy=DeduplicationPolicy(policy), ttl=ttl)


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


@click.command(cls=Command, spare=_SPARE)
@start_options(WorkflowIDConflictPolicy.FAIL)
@click.option("--signal", "signal_name", help="Signal it, and start it only if it is not open.")
@click.option("--signal-input", "signal_inputs", multiple=True, help="Argument of the signal, JSON; may be repeated.")
@target_options
def start(target: Target, asked: Asked, signal_name: str | None, signal_inputs: tuple[str, ...]) -> None:
    """Start a workflow; with --signal, unless it is open, and signal it, in one step."""
    if signal_name == "" or (signal_inputs and signal_name is None):
        raise Usage("--signal needs a name; leave --signal and --signal-input out to start without one")
    if signal_name is not None:
        _start_with_signal(target, asked(target), signal_name, signal_inputs)
        return
    request = asked(target)

    async def command(engine: Engine) -> None:
        response = await engine.call(o.START_WORKFLOW, request)
        _print_start(target, response.workflow_id or request.workflow_id, response.run_id, response.started)

    run(target, command)


@click.command(cls=Command, name="signal-with-start", spare=_SPARE)
@start_options(WorkflowIDConflictPolicy.USE_EXISTING)
@click.option("--signal-name", required=True, help="Name of the signal.")
@click.option("--signal-input", "signal_inputs", multiple=True, help="Argument of the signal, JSON; may be repeated.")
@target_options
def signal_with_start(target: Target, asked: Asked, signal_name: str, signal_inputs: tuple[str, ...]) -> None:
    """Signal a workflow, which is started first unless it is open, in one step."""
    if not signal_name:
        raise Usage("--signal-name is empty (an unset variable?)")
    _start_with_signal(target, asked(target), signal_name, signal_inputs)


def _start_with_signal(target: Target, request: r.StartWorkflowRequest, name: str, inputs: tuple[str, ...]) -> None:
    both = signalled(request, name, read_inputs(inputs, (), "--signal-input"))

    async def command(engine: Engine) -> None:
        response = await engine.call(o.SIGNAL_WITH_START_WORKFLOW, both)
        _print_start(target, request.workflow_id, response.run_id, response.started)

    run(target, command)


def _print_start(target: Target, workflow_id: str, run_id: str, started: bool) -> None:
    if target.as_json:
        print_json({"workflow_id": workflow_id, "run_id": run_id, "started": started})
        return
    shown = console()
    shown.print("Started." if started else "Already started: this is the run that was there.")
    key_values((("Workflow id", workflow_id), ("Run id", run_id)), shown)


@click.command(cls=Command, spare=_SPARE)
@start_options(WorkflowIDConflictPolicy.FAIL)
@target_options
def execute(target: Target, asked: Asked) -> None:
    """Start a workflow, wait for it to close, and print its result. Exit code 1 when it did not succeed.

    The workflow goes on when this command is interrupted; `stepwell workflow result` waits for it again.
    """
    request = asked(target)

    async def command(engine: Engine) -> None:
        response = await engine.call(o.START_WORKFLOW, request)
        there = WorkflowExecution(workflow_id=response.workflow_id or request.workflow_id, run_id=response.run_id)
        click.echo(safe(f"Started {there.workflow_id} (run {there.run_id})."), err=True)
        print_end(await ended(engine, there), target)

    run(target, command)


@click.command(cls=Command, name="update-with-start", spare=_SPARE)
@start_options(WorkflowIDConflictPolicy.USE_EXISTING)
@click.option("--update-name", required=True, help="Name of the update.")
@click.option("--update-input", "update_inputs", multiple=True, help="Argument of the update, JSON; may be repeated.")
@stage_options
@target_options
def update_with_start(
    target: Target,
    asked: Asked,
    update_name: str,
    update_inputs: tuple[str, ...],
    update_id: str,
    wait_for_stage: WorkflowUpdateStage,
    timeout: timedelta | None,
) -> None:
    """Send an update to a workflow, which is started first unless it is open; print the update's result.

    Exit code 1: the update was rejected, or failed.
    """
    if not update_name:
        raise Usage("--update-name is empty (an unset variable?)")
    both = r.UpdateWithStartWorkflowRequest(
        **msgspec.structs.asdict(asked(target)),
        update_id=update_id,
        update_name=update_name,
        update_input=read_inputs(update_inputs, (), "--update-input"),
        wait_for_stage=wait_for_stage,
    )

    async def command(engine: Engine) -> None:
        async def ask(wait: timedelta) -> r.UpdateWithStartWorkflowResponse:
            return await engine.call(o.UPDATE_WITH_START_WORKFLOW, msgspec.structs.replace(both, timeout=wait))

        print_update(await sent_update(ask, wait_for_stage, timeout), target)

    run(target, command)
