"""The contract of QueryBoard."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell.api.common import WorkflowExecution
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload
from stepwell.api.requests import QueryWorkflowRequest

from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.ports import QueryAnswer, QueryBoard
from stepwell_server.history.query_board import MemoryQueryBoard

CLOCK = SystemClock()


@pytest.fixture(params=["memory", "dynamodb"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "dynamodb":
        request.getfixturevalue("cell")
    return str(request.param)


@pytest.fixture
async def board(request: pytest.FixtureRequest, where: str) -> AsyncIterator[QueryBoard]:
    if where == "memory":
        yield MemoryQueryBoard()
        return
    from stepwell_server.adapters.aws.client import AwsClients
    from stepwell_server.adapters.aws.query_items import QueryItems
    from stepwell_server.adapters.aws.s3_blobs import S3Blobs

    cell = request.getfixturevalue("cell")
    clients = AwsClients()
    yield QueryItems(clients.service("dynamodb"), cell.names.ctl_table, CLOCK, S3Blobs(clients, cell.bucket))
    await clients.close()


def asked(size: int = 10) -> QueryWorkflowRequest:
    noise = bytes((number * number) % 251 for number in range(size))
    return QueryWorkflowRequest(
        execution=WorkflowExecution(workflow_id="order-1"), query_type="status", query_args=(Payload(data=noise),)
    )


async def post(
    board: QueryBoard, query_id: str, request: QueryWorkflowRequest | None = None, seconds: float = 30
) -> None:
    await board.post(query_id, request or asked(), expires_at=CLOCK.now() + timedelta(seconds=seconds))


async def test_the_first_answer_reaches_who_waits(board: QueryBoard) -> None:
    await post(board, "one")
    assert await board.asked("one") == asked()
    waiting = asyncio.ensure_future(board.wait("one", 20))
    await asyncio.sleep(0)
    answer = QueryAnswer(result=(Payload(data=b"paid"),))
    assert await board.answer("one", answer)
    assert not await board.answer("one", QueryAnswer(again=True))
    assert await waiting == answer
    assert await board.asked("one") is None


async def test_failures_and_another_turn_come_through(board: QueryBoard) -> None:
    for query_id, answer in (("bad", QueryAnswer(failure=Failure(message="no"))), ("turn", QueryAnswer(again=True))):
        await post(board, query_id)
        assert await board.answer(query_id, answer)
        assert await board.wait(query_id, 5) == answer


async def test_what_is_large_comes_through(board: QueryBoard) -> None:
    large = asked(1_500_000)
    await post(board, "large", large)
    assert await board.asked("large") == large
    answer = QueryAnswer(result=large.query_args)
    assert await board.answer("large", answer)
    assert await board.wait("large", 5) == answer


async def test_nobody_waits_for_what_was_never_asked(board: QueryBoard) -> None:
    assert await board.asked("never") is None
    assert not await board.answer("never", QueryAnswer())
    assert await board.wait("never", 0) is None


async def test_a_wait_ends_without_an_answer(board: QueryBoard) -> None:
    await post(board, "slow")
    assert await board.wait("slow", 0.05) is None
    waiting = asyncio.ensure_future(board.wait("slow", 20))
    await asyncio.sleep(0.05)
    board.stop()
    assert await waiting is None
