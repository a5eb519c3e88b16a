"""Runs a program on one server and brings back what can be compared: results, answers, histories, descriptions."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from google.protobuf.json_format import MessageToDict
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import FailureError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from .interpreter import Activities, Gates, Interpreter, described, live
from .programs import ATTRIBUTES, Program, children

_LIMIT = 90.0
_QUEUE = "oracle"
_IDENTITY = "oracle"


@dataclass
class Report:
    """``runs``: the histories of each workflow's chain as JSON, by workflow id without what is of this call."""

    result: Any = None
    answers: list[Any] = field(default_factory=list)
    runs: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    described: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Server:
    """A client of it, beside a worker that runs the interpreter."""

    client: Client
    gates: Gates
    tag: str


@asynccontextmanager
async def connected(address: str, tag: str) -> AsyncIterator[Server]:
    client = await Client.connect(address, identity=_IDENTITY)
    await _add_attributes(client)
    live.clear()
    gates = Gates()
    activities = Activities(gates)
    worker = Worker(
        client,
        task_queue=f"{_QUEUE}-{tag}",
        workflows=[Interpreter],
        activities=[activities.work, activities.gate, activities.slow, activities.beating],
        workflow_runner=UnsandboxedWorkflowRunner(),
        disable_eager_activity_execution=True,
        identity=_IDENTITY,
        build_id="oracle",
        max_heartbeat_throttle_interval=timedelta(seconds=0.2),  # by a heartbeat an activity learns of its cancellation
    )
    async with worker:
        yield Server(client, gates, tag)


async def _add_attributes(client: Client) -> None:
    kinds = {name: getattr(IndexedValueType, f"INDEXED_VALUE_TYPE_{kind.upper()}") for name, kind in ATTRIBUTES.items()}
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(search_attributes=kinds, namespace=client.namespace)
        )
    except RPCError as error:
        # who has no such call registers an attribute by its use
        if error.status not in (RPCStatusCode.ALREADY_EXISTS, RPCStatusCode.UNIMPLEMENTED):
            raise


async def run(server: Server, name: str, program: Program) -> Report:
    """What came of the program; ``problem`` says why it did not come to its end."""
    report = Report()
    workflow_id = f"{name}-{server.tag}"
    handle = await server.client.start_workflow(
        "Interpreter", program, id=workflow_id, task_queue=f"{_QUEUE}-{server.tag}", static_summary=f"program {name}"
    )
    try:
        async with asyncio.timeout(_LIMIT):
            report.result = await _driven(server, handle, report)
            await _end_orphans(server, workflow_id, program)
    except TimeoutError:
        report.problem = f"no end after {_LIMIT:.0f} s; {await _where(server, workflow_id)}"
    except RPCError as error:
        report.problem = f"{error.status.name}: {error.message}"
    await _collect(server, workflow_id, program, report)
    return report


async def _driven(server: Server, handle: WorkflowHandle[Any, Any], report: Report) -> Any:
    """Takes away one token after the other until the workflow is closed; then its result, or its failure."""
    current = server.client.get_workflow_handle(handle.id)
    result = asyncio.create_task(handle.result())
    try:
        while not result.done():
            tokens = await _rest(current)
            if tokens and not result.done():
                await _take(server, current, tokens[0], report)
                if tokens[0] == "terminate":  # it stands there for ever
                    break
            else:
                await asyncio.wait([result], timeout=0.05)
        return {"value": await result}
    except WorkflowFailureError as error:
        return {"failure": described(error.cause)}
    finally:
        result.cancel()


async def _rest(handle: WorkflowHandle[Any, Any]) -> list[str] | None:
    seen = live.get(handle.id)
    if seen is None or not seen.rest():
        return None
    try:
        tokens: list[str] | None = await handle.query("rest")
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.INVALID_ARGUMENT):
            return None  # between two runs of a chain, or closed
        raise
    return tokens


async def _take(server: Server, handle: WorkflowHandle[Any, Any], token: str, report: Report) -> None:
    kind, _, name = token.partition(" ")
    match kind:
        case "gate":
            server.gates.open(f"{handle.id}/{name}")
            await _gone(handle, token)
        case "signal":
            await handle.signal(name, {"for": name})
        case "query":
            report.answers.append([token, await handle.query("signals")])
            await handle.signal(name)
        case "update":
            await _update(handle, name, report)
        case "child":
            child = server.client.get_workflow_handle(f"{handle.id}-{name}")
            report.answers.append([token, await _driven(server, child, report)])
            await _gone(handle, token)
        case "begun":
            # answered behind its first task
            await server.client.get_workflow_handle(f"{handle.id}-{name}").query("rest")
            await handle.signal(name)
        case "cancel":
            await handle.cancel(reason="the program asks for it")
            await _gone(handle, token)
        case "terminate":
            await handle.terminate("a detail", reason="the program asks for it")
        case _:
            raise AssertionError(token)


async def _gone(handle: WorkflowHandle[Any, Any], token: str) -> None:
    """Until the workflow no longer stands there: what was let through takes its time to come back to it."""
    while True:
        if (await handle.describe()).status != WorkflowExecutionStatus.RUNNING:
            return
        tokens = await _rest(handle)
        if tokens is None or token not in tokens:
            return
        await asyncio.sleep(0.02)


async def _update(handle: WorkflowHandle[Any, Any], name: str, report: Report) -> None:
    kind = name.rpartition(":")[2]
    for sent in ["rejected", "plain"] if kind == "rejected first" else [kind]:
        answer: Any
        try:
            answer = await handle.execute_update("change", args=[name, sent], id=f"{handle.id}-{name}-{sent}")
        except WorkflowUpdateFailedError as error:
            answer = described(error.cause if isinstance(error.cause, FailureError) else error)
        report.answers.append([name, sent, answer])


async def _end_orphans(server: Server, workflow_id: str, program: Program) -> None:
    for name, operation in children(program).items():
        if operation["op"] != "orphan":
            continue
        handle = server.client.get_workflow_handle(f"{workflow_id}-{name}")
        try:
            if operation["policy"] == "ABANDON":
                await handle.terminate(reason="its parent has ended")
            await handle.result()
        except WorkflowFailureError:
            pass
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:  # the program ended before it came to start it
                raise


async def _where(server: Server, workflow_id: str) -> str:
    try:
        async with asyncio.timeout(5):
            tokens = await server.client.get_workflow_handle(workflow_id).query("rest")
    except (TimeoutError, RPCError) as error:
        return f"it does not answer ({type(error).__name__})"
    return f"it stands at {tokens}"


async def _collect(server: Server, workflow_id: str, program: Program, report: Report) -> None:
    for name in ["", *children(program)]:
        full = f"{workflow_id}-{name}" if name else workflow_id
        try:
            chain = await _chain(server.client, full)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            continue
        report.runs[name or "program"] = [events for _, events in chain]
        report.described[name or "program"] = [await _described_run(server.client, full, run_id) for run_id, _ in chain]


async def _chain(client: Client, workflow_id: str) -> Sequence[tuple[str, list[dict[str, Any]]]]:
    """Run ids and events of all runs, from the first on."""
    latest = await client.get_workflow_handle(workflow_id).describe()
    started = [
        event async for event in client.get_workflow_handle(workflow_id, run_id=latest.run_id).fetch_history_events()
    ]
    run_id = started[0].workflow_execution_started_event_attributes.first_execution_run_id
    chain = []
    while run_id:
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        events = [MessageToDict(event) async for event in handle.fetch_history_events()]
        chain.append((run_id, events))
        run_id = next((value for value in _values(events[-1], "newExecutionRunId")), "")
    return chain


def _values(event: dict[str, Any], key: str) -> list[str]:
    return [part[key] for part in event.values() if isinstance(part, dict) and part.get(key)]


async def _described_run(client: Client, workflow_id: str, run_id: str) -> dict[str, Any]:
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace)
    request.execution.workflow_id, request.execution.run_id = workflow_id, run_id
    answer: dict[str, Any] = MessageToDict(await client.workflow_service.describe_workflow_execution(request))
    return answer
