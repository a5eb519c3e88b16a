"""What commands do where nothing holds a call, as a function does not: they ask again, further and further apart."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowUpdateStage
from stepwell.api.events import HistoryEvent, WorkflowExecutionTerminated
from stepwell.api.operations import POLL_WORKFLOW_UPDATE, Operation
from stepwell.api.payloads import Payload
from stepwell.cli import asking, inspection, standalone, updates, waiting
from stepwell.cli.connection import Engine, Target
from stepwell.client import Client
from stepwell.transport import Transport

EMPTY = 5
RUN = WorkflowExecution(workflow_id="w", run_id="r")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
END = HistoryEvent(event_id=3, event_time=NOW, attributes=WorkflowExecutionTerminated())
ANSWER = (Payload(metadata={"encoding": "json/plain"}, data=b"1"),)


class AnswersAtOnce:
    """With nothing at first."""

    def __init__(self) -> None:
        self.asked = 0

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        if operation.name == "DescribeWorkflow":
            info = r.WorkflowExecutionInfo(
                execution=RUN, workflow_type="t", task_queue="q", status=WorkflowExecutionStatus.RUNNING, start_time=NOW
            )
            return r.DescribeWorkflowResponse(info=info, workflow_task_timeout=timedelta(seconds=10))
        self.asked += 1
        there = self.asked > EMPTY
        match operation.name:
            case "GetHistory":
                return r.GetHistoryResponse(run_id="r", events=(END,) if there else (), next_page_token=b"on")
            case "PollActivity":
                outcome = r.ActivityResult(status=WorkflowExecutionStatus.COMPLETED, result=ANSWER)
                return r.PollActivityResponse(run_id="r", outcome=outcome if there else None)
            case "QueryWorkflow":
                return r.QueryWorkflowResponse(result=ANSWER) if there else r.QueryWorkflowResponse(query_token=b"on")
        stage = WorkflowUpdateStage.COMPLETED if there else WorkflowUpdateStage.ACCEPTED
        return r.PollWorkflowUpdateResponse(update_id="u", run_id="r", stage=stage)

    async def close(self) -> None: ...


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return asked


@pytest.fixture
def transport() -> AnswersAtOnce:
    return AnswersAtOnce()


@pytest.fixture
def engine(transport: AnswersAtOnce) -> Engine:
    return Engine(transport, Target("http://a", "default", as_json=False))


async def result(engine: Engine) -> None:
    await waiting.ended(engine, RUN)


async def follow(engine: Engine) -> None:
    assert [page async for page in inspection.pages_of(engine, RUN, follow=True)] == [(END,)]


async def query(engine: Engine) -> None:
    assert await asking._built_in(engine, "q", "w", "", None) == 1


async def update(engine: Engine) -> None:
    async def ask(wait: timedelta) -> r.PollWorkflowUpdateResponse:
        return await engine.call(POLL_WORKFLOW_UPDATE, r.PollWorkflowUpdateRequest(execution=RUN, update_id="u"))

    assert (await updates.sent_update(ask, WorkflowUpdateStage.COMPLETED, None)).stage is WorkflowUpdateStage.COMPLETED


async def activity(engine: Engine) -> None:
    assert await Client(engine.transport).get_activity_handle("a", result_type=int).result() == 1


@pytest.mark.parametrize("waits", [result, follow, query, update, activity])
async def test_who_waits_pauses(
    waits: Callable[[Engine], Any], engine: Engine, transport: AnswersAtOnce, pauses: list[float]
) -> None:
    await waits(engine)
    assert transport.asked == EMPTY + 1
    assert len(pauses) == EMPTY and pauses == sorted(pauses) and pauses[0] > 0


def test_so_does_the_command_for_an_activity(
    transport: AnswersAtOnce, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(*_: object) -> Transport:
        return transport

    monkeypatch.setattr("stepwell.cli.connection._transport", opened)
    done = CliRunner().invoke(standalone.result, ["a", "--address", "http://127.0.0.1:7400"])
    assert done.output == "1\n" and transport.asked == EMPTY + 1 and len(pauses) == EMPTY
