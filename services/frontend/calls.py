"""The operations for callers inside this process: the same handlers, checks and limits as for those outside."""

from typing import Any, TypeVar

from stepwell.api.errors import ApiError
from stepwell.api.operations import Operation

from ..history.engine import Engine
from .limiting import Limiter
from .refusals import api_error
from .routes import HANDLERS

Req = TypeVar("Req")
Resp = TypeVar("Resp")


class Calls:
    def __init__(self, engine: Engine, limiter: Limiter) -> None:
        self._engine = engine
        self._limiter = limiter

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises ``ApiError`` and nothing else."""
        handler = HANDLERS[operation.name]
        try:
            response: Resp
            if self._limiter.active:
                response = await self._limiter.carry_out(handler, self._engine, operation, request)
            else:
                response = await handler(self._engine, request)
        except ApiError:
            raise
        except Exception as error:
            raise api_error(error, operation.name) from error
        return response

    async def undelivered(self, response: Any) -> None:
        """The answer of a poll reached nobody: its tasks are offered again."""
        await self._engine.undelivered(response)
