"""Queries that wait for their answers, in the memory of one process."""

import asyncio
from datetime import datetime

from stepwell.api.requests import QueryWorkflowRequest

from .ports import QueryAnswer


class _Posted:
    __slots__ = ("answer", "request")

    def __init__(self, request: QueryWorkflowRequest) -> None:
        self.request = request
        self.answer: asyncio.Future[QueryAnswer | None] = asyncio.get_running_loop().create_future()


class MemoryQueryBoard:
    """Implements ``ports.QueryBoard`` for an engine that nobody else hands out queries of."""

    def __init__(self) -> None:
        self._posted: dict[str, _Posted] = {}

    async def post(self, query_id: str, request: QueryWorkflowRequest, *, expires_at: datetime) -> None:
        self._posted[query_id] = _Posted(request)

    async def asked(self, query_id: str) -> QueryWorkflowRequest | None:
        posted = self._posted.get(query_id)
        return None if posted is None or posted.answer.done() else posted.request

    async def answer(self, query_id: str, answer: QueryAnswer) -> bool:
        posted = self._posted.get(query_id)
        if posted is None or posted.answer.done():
            return False
        posted.answer.set_result(answer)
        return True

    async def wait(self, query_id: str, seconds: float) -> QueryAnswer | None:
        posted = self._posted.get(query_id)
        if posted is None:
            return None
        await asyncio.wait((posted.answer,), timeout=max(seconds, 0.0))
        return posted.answer.result() if posted.answer.done() else None

    async def remove(self, query_id: str) -> None:
        self._posted.pop(query_id, None)

    def stop(self) -> None:
        for posted in self._posted.values():
            if not posted.answer.done():
                posted.answer.set_result(None)
