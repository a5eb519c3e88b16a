"""``stepwell workflow query | stack | metadata``: what the workflow's own code, or its worker, says."""

from datetime import timedelta
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.enums import QueryRejectCondition
from ..api.payloads import Payloads
from ..client.queries import answer_of
from .connection import Engine, Target, run
from .grammar import Command
from .inputs import read_inputs, value_of
from .options import DURATION, choice_of, input_options, run_id_option, target_options, workflow_id_argument
from .output import console, key_values, print_json, section
from .text import safe, value_text

_STACK_TRACE, _METADATA = "__stack_trace", "__workflow_metadata"

_timeout_option = click.option(
    "--timeout", type=DURATION, help="How long to wait for a worker's answer (default and limit 10s)."
)


@click.command(cls=Command, spare=("--name", "--input"))
@workflow_id_argument
@click.option("--type", "--name", "query_type", required=True, help="Name of the query.")
@input_options
@run_id_option
@_timeout_option
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
        response = await answer_of(engine.call, request)
        print_values(response.result, target)

    run(target, command)


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@_timeout_option
@target_options
def stack(target: Target, workflow_id: str, run_id: str, timeout: timedelta | None) -> None:
    """Show at which lines the workflow's code waits, task by task; a worker has to answer."""

    async def command(engine: Engine) -> None:
        answer = await _built_in(engine, _STACK_TRACE, workflow_id, run_id, timeout)
        if target.as_json:
            print_json(answer)
        else:
            click.echo(safe(str(answer)).rstrip() or "Nothing waits: the workflow's code is at its end.")

    run(target, command)


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@_timeout_option
@target_options
def metadata(target: Target, workflow_id: str, run_id: str, timeout: timedelta | None) -> None:
    """Show which signals, queries and updates a workflow takes now; a worker has to answer."""

    async def command(engine: Engine) -> None:
        answer = await _built_in(engine, _METADATA, workflow_id, run_id, timeout)
        if target.as_json:
            print_json(answer)
        else:
            _print_metadata(answer, console())

    run(target, command)


async def _built_in(engine: Engine, name: str, workflow_id: str, run_id: str, timeout: timedelta | None) -> Any:
    response = await answer_of(
        engine.call,
        r.QueryWorkflowRequest(
            namespace=engine.target.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
            query_type=name,
            timeout=timeout,
        ),
    )
    value = value_of(response.result[0]) if response.result else None
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _print_metadata(answer: dict[str, Any], shown: Console) -> None:
    key_values((("Type", answer.get("type", "")), ("Details", str(answer.get("current_details") or ""))), shown)
    for kind in ("signals", "queries", "updates"):
        found = answer.get(kind) or []
        if found:
            section(kind.capitalize(), ("NAME", "DESCRIPTION"), (_handler(each) for each in found), shown)
        else:
            shown.print()
            shown.print(Text(f"No {kind}."))


def _handler(found: dict[str, Any]) -> tuple[str, str]:
    return str(found.get("name") or "any other"), str(found.get("description") or "")


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
