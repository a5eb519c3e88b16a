"""Completions of workflow tasks that are made at the same moment travel in one HTTP request.

A worker under load completes many workflow tasks at once, and a request costs more than what it carries. Nothing waits
for company: a completion is sent at once unless others are under way, and then goes with the next ones.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ..api._struct import Record
from ..api.codec import decode_json, encode_json
from ..api.errors import ApiError, Internal, error_from
from ..api.limits import MAX_COMPLETIONS_PER_REQUEST
from ..api.operations import RESPOND_WORKFLOW_TASK_COMPLETED, RESPOND_WORKFLOW_TASKS_COMPLETED, Operation
from ..api.requests import (
    CompletionAnswer,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTasksCompletedResponse,
)

COMPLETIONS: tuple[Operation[Any, Any], ...] = (RESPOND_WORKFLOW_TASK_COMPLETED, RESPOND_WORKFLOW_TASKS_COMPLETED)
"""What a line sends."""

MAX_UNDER_WAY = 2
"""Requests with completions: while the engine commits those of one, the worker makes those of the other."""

SLOW_SECONDS = 1.0
"""A request that takes longer is not counted any more: a connection that hangs must not hold up the other runs."""

MAX_BATCH_BYTES = 1024 * 1024

Completed = RespondWorkflowTaskCompletedResponse
Send = Callable[[Operation[Any, Any], bytes], Awaitable[bytes]]


class _Several(Record, frozen=True, kw_only=True):
    """RespondWorkflowTasksCompletedRequest of completions that are encoded already."""

    namespace: str = "default"
    completions: list[msgspec.Raw]


class _Waiting:
    __slots__ = ("answer", "body")

    def __init__(self, body: bytes, answer: "asyncio.Future[Completed]") -> None:
        self.body = body
        self.answer = answer


class _Turn:
    """The place of one request among those under way; given back once, when it ends or takes long."""

    __slots__ = ("timer",)

    def __init__(self, give_back: "Callable[[_Turn], None]") -> None:
        loop = asyncio.get_running_loop()
        self.timer: asyncio.TimerHandle | None = loop.call_later(SLOW_SECONDS, give_back, self)


class CompletionLine:
    """Of one namespace. ``send`` carries an encoded request to the engine, with repeats, and returns what it says."""

    def __init__(self, namespace: str, send: Send) -> None:
        self._namespace = namespace
        self._send = send
        self._waiting: list[_Waiting] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def complete(self, body: bytes) -> Completed:
        """Raises what the engine refuses this completion with, whatever it says to those beside it."""
        if self._under_way < MAX_UNDER_WAY:
            self._under_way += 1
            turn = _Turn(self._give_back)
            try:
                return await self._alone(body)
            finally:
                self._give_back(turn)
        waiting = _Waiting(body, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        return await waiting.answer

    async def _alone(self, body: bytes) -> Completed:
        return decode_json(await self._send(RESPOND_WORKFLOW_TASK_COMPLETED, body), Completed)

    def _give_back(self, turn: _Turn) -> None:
        """The next ones go one round of the loop later, so that those whose answers came together go on together."""
        if turn.timer is None:
            return
        turn.timer.cancel()
        turn.timer = None
        if not self._waiting:
            self._under_way -= 1
            return
        task = asyncio.get_running_loop().create_task(self._next())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _next(self) -> None:
        turn = _Turn(self._give_back)
        batch = self._next_batch()
        try:
            if batch:
                await self._together(batch)
        except asyncio.CancelledError:  # the loop ends
            for waiting in [*batch, *self._waiting]:
                waiting.answer.cancel()
            self._waiting.clear()
            raise
        finally:
            self._give_back(turn)

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = taken = 0
        for waiting in self._waiting:
            size += len(waiting.body)
            if batch and (size > MAX_BATCH_BYTES or len(batch) == MAX_COMPLETIONS_PER_REQUEST):
                break
            taken += 1
            if not waiting.answer.done():  # else its caller has given up
                batch.append(waiting)
        del self._waiting[:taken]
        return batch

    async def _together(self, batch: list[_Waiting]) -> None:
        if len(batch) == 1:
            await self._one(batch[0])
            return
        bodies = [msgspec.Raw(waiting.body) for waiting in batch]
        request = encode_json(_Several(namespace=self._namespace, completions=bodies))
        try:
            content = await self._send(RESPOND_WORKFLOW_TASKS_COMPLETED, request)
            answers = decode_json(content, RespondWorkflowTasksCompletedResponse).answers
            if len(answers) != len(batch):
                raise Internal(f"{len(batch)} completions got {len(answers)} answers")
        except ApiError as error:
            await self._refused(batch, error)
        except Exception as error:
            for waiting in batch:
                _fail(waiting, error)
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                _answer(waiting, answer)

    async def _one(self, waiting: _Waiting) -> None:
        try:
            response = await self._alone(waiting.body)
        except Exception as error:
            _fail(waiting, error)
        else:
            if not waiting.answer.done():
                waiting.answer.set_result(response)

    async def _refused(self, batch: list[_Waiting], error: ApiError) -> None:
        """One that the engine cannot read must not take the others along."""
        if error.retryable:
            for waiting in batch:
                _fail(waiting, error_from(error.body()))
            return
        for waiting in batch:
            await self._one(waiting)


def _answer(waiting: _Waiting, answer: CompletionAnswer) -> None:
    if waiting.answer.done():
        return
    if answer.response is not None:
        waiting.answer.set_result(answer.response)
    elif answer.error is not None:
        waiting.answer.set_exception(error_from(answer.error))
    else:
        waiting.answer.set_exception(Internal("the engine said nothing to a completion"))


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
