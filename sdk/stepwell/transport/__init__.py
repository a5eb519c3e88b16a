"""How requests reach an engine: over HTTP, or handed over in this process. Callers see no difference."""

from typing import Protocol, TypeVar

from ..api.operations import Operation

Req = TypeVar("Req")
Resp = TypeVar("Resp")


class Transport(Protocol):
    """Raises ``stepwell.api.errors.ApiError`` for refusals; ``Unavailable`` when the engine is out of reach."""

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp: ...

    async def close(self) -> None: ...
