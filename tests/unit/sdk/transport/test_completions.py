"""Completions that are made together travel together, and each gets its own answer."""

import asyncio
from typing import Any

import pytest
from stepwell.api.codec import decode_json, encode_json
from stepwell.api.enums import CompletionOutcome
from stepwell.api.errors import ApiError, InvalidArgument, NotFound, Unavailable
from stepwell.api.limits import MAX_COMPLETIONS_PER_REQUEST
from stepwell.api.operations import RESPOND_WORKFLOW_TASK_COMPLETED, Operation
from stepwell.api.requests import (
    CompletionAnswer,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTasksCompletedRequest,
    RespondWorkflowTasksCompletedResponse,
    WorkerInfo,
)
from stepwell.transport import completions
from stepwell.transport.completions import MAX_BATCH_BYTES, MAX_UNDER_WAY, CompletionLine

WORKER = WorkerInfo(identity="me")


def completion(number: int, size: int = 0) -> bytes:
    return encode_json(
        RespondWorkflowTaskCompletedRequest(
            namespace="n", task_token=b"t" * (size + 1), nonce=str(number), worker=WORKER
        )
    )


def answer(request: RespondWorkflowTaskCompletedRequest) -> CompletionAnswer:
    if request.nonce == "7":
        return CompletionAnswer(error=NotFound("run 7 is gone").body())
    response = RespondWorkflowTaskCompletedResponse(
        outcome=CompletionOutcome.ACCEPTED, next_event_id=int(request.nonce)
    )
    return CompletionAnswer(response=response)


class Engine:
    """Answers after a moment; ``sizes`` are the numbers of completions in each request."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        self.sizes: list[int] = []
        self._refusal = refusal

    async def send(self, operation: Operation[Any, Any], body: bytes) -> bytes:
        await asyncio.sleep(0.01)
        request = decode_json(body, operation.request_type)
        if isinstance(request, RespondWorkflowTasksCompletedRequest):
            assert request.namespace == "n"
            self.sizes.append(len(request.completions))
            if self._refusal is not None:
                raise self._refusal
            return encode_json(RespondWorkflowTasksCompletedResponse(answers=tuple(map(answer, request.completions))))
        assert operation is RESPOND_WORKFLOW_TASK_COMPLETED
        self.sizes.append(1)
        one = answer(request)
        if one.error is not None:
            raise NotFound(one.error.message)
        return encode_json(one.response)


async def completed(line: CompletionLine, *numbers: int, size: int = 0) -> list[int | BaseException]:
    results = await asyncio.gather(
        *(line.complete(completion(number, size)) for number in numbers), return_exceptions=True
    )
    return [result if isinstance(result, BaseException) else result.next_event_id for result in results]


async def test_those_that_meet_others_under_way_go_together() -> None:
    engine = Engine()
    line = CompletionLine("n", engine.send)
    found = await completed(line, *range(20, 50))
    assert found == list(range(20, 50))
    assert engine.sizes == [1] * MAX_UNDER_WAY + [30 - MAX_UNDER_WAY]
    assert await completed(line, 1) == [1]
    assert engine.sizes[-1] == 1


async def test_each_gets_its_own_refusal() -> None:
    line = CompletionLine("n", Engine().send)
    first, second, sixth, seventh, eighth = await completed(line, 1, 2, 6, 7, 8)
    assert (first, second, sixth, eighth) == (1, 2, 6, 8)
    assert isinstance(seventh, NotFound) and "run 7" in str(seventh)


async def test_a_request_holds_so_many_and_so_much() -> None:
    engine = Engine()
    line = CompletionLine("n", engine.send)
    count = MAX_COMPLETIONS_PER_REQUEST + 10 + MAX_UNDER_WAY
    await completed(line, *range(100, 100 + count))
    assert engine.sizes == [1] * MAX_UNDER_WAY + [MAX_COMPLETIONS_PER_REQUEST, 10]
    engine.sizes.clear()
    await completed(line, *range(8), size=MAX_BATCH_BYTES // 3)
    assert sum(engine.sizes) == 8 and max(engine.sizes) == 2


async def test_one_that_the_engine_cannot_read_takes_no_others_along() -> None:
    engine = Engine(InvalidArgument("no such operation"))
    line = CompletionLine("n", engine.send)
    assert await completed(line, 1, 2, 3, 4) == [1, 2, 3, 4]
    assert engine.sizes == [1, 1, 2, 1, 1]


async def test_an_outage_is_told_to_each() -> None:
    line = CompletionLine("n", Engine(Unavailable("stopping")).send)
    first, second, *others = await completed(line, 1, 2, 3, 4)
    assert (first, second) == (1, 2)
    assert [type(error) for error in others] == [Unavailable, Unavailable]
    assert others[0] is not others[1]


async def test_who_gives_up_is_left_out() -> None:
    engine = Engine()
    line = CompletionLine("n", engine.send)
    calls = [asyncio.create_task(line.complete(completion(number))) for number in range(1, 6)]
    await asyncio.sleep(0)
    calls[2].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[2], asyncio.CancelledError)
    assert engine.sizes == [1, 1, 2]


async def test_requests_that_hang_do_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "SLOW_SECONDS", 0.05)
    engine = Engine()
    hanging: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def send(operation: Operation[Any, Any], body: bytes) -> bytes:
        if b'"nonce":"1' in body:
            await hanging
        return await engine.send(operation, body)

    line = CompletionLine("n", send)
    stuck = [asyncio.create_task(line.complete(completion(number))) for number in (10, 11)]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        assert await completed(line, 2, 3, 4) == [2, 3, 4]
        assert await completed(line, 5) == [5]
    hanging.set_result(None)
    assert [response.next_event_id for response in await asyncio.gather(*stuck)] == [10, 11]
    assert await completed(line, 20, 21, 22) == [20, 21, 22]
    assert engine.sizes[-3:] == [1, 1, 1]


@pytest.mark.parametrize("when", [0.0, 0.005, 0.015])
async def test_the_end_of_the_loop_ends_all(when: float) -> None:
    line = CompletionLine("n", Engine().send)
    calls = [asyncio.create_task(line.complete(completion(number))) for number in range(1, 6)]
    await asyncio.sleep(when)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert any(isinstance(result, asyncio.CancelledError) for result in results)
    async with asyncio.timeout(30):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
