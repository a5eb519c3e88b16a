"""Calls between processes of the simulation: records travel encoded, may be lost on the way there or back, take time,
and break when the engine dies. The engine's side runs as a task of the engine's own process."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Protocol, TypeVar

from stepwell.api.codec import decode_json, encode_json
from stepwell.api.errors import Unavailable, error_from
from stepwell.api.operations import Operation
from stepwell.api.requests import PollActivityTaskResponse, PollWorkflowTaskResponse

from tests.simulation.faults import Faults
from tests.simulation.loop import CURRENT_PROCESS, Process

Req = TypeVar("Req")
Resp = TypeVar("Resp")

_POLLED = (PollWorkflowTaskResponse, PollActivityTaskResponse)

Watch = Callable[[Operation[Any, Any], Any, Any], None]


class Server(Protocol):
    """An engine as its callers see it."""

    async def serve(self, operation: Operation[Any, Any], request: Any) -> Any: ...

    async def undelivered(self, response: Any) -> None:
        """The caller of a poll was seen to be gone before it had its answer."""
        ...


class Network:
    """Each call goes to any of the engines that listen, as behind a load balancer."""

    def __init__(self, faults: Faults, random: Random, *, cancels: bool) -> None:
        """``cancels``: a caller that gives up or dies cancels what it asked for, as in process; over HTTP not."""
        self._faults = faults
        self._cancels = cancels
        self._random = random
        self._listening: dict[Process, Server] = {}
        self._open: dict[Process, dict[asyncio.Future[Any], Process | None]] = {}
        self.watch_reply: Watch | None = None
        """Told of each answer when the engine gives it, whether or not it arrives."""

    def listen(self, process: Process, server: "Server") -> None:
        self._listening[process] = server
        self._open[process] = {}
        process.on_death.append(lambda: self._break(process))

    def _break(self, process: Process) -> None:
        del self._listening[process]
        for call, caller in self._open.pop(process).items():
            if not call.done() and (caller is None or caller.alive):
                call.set_exception(Unavailable("simulated: the connection broke"))

    def _choose(self, listening: "list[tuple[Process, Server]]") -> "tuple[Process, Server]":
        return self._random.choice(listening)

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        await self._travel()
        if self._faults.strikes("request_lost") or not self._listening:
            await asyncio.sleep(self._faults.delay(0.5))
            raise Unavailable("simulated: the request did not arrive")
        engine, server = self._choose(list(self._listening.items()))
        body = encode_json(request)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        caller = CURRENT_PROCESS.get()
        self._open[engine][answer] = caller
        served = engine.spawn(self._serve(operation, body, server, answer, caller), name=operation.name)

        def give_up() -> None:
            served.cancel()

        if self._cancels and caller is not None:
            caller.on_death.append(give_up)
        try:
            data = await answer
        except asyncio.CancelledError:
            if self._cancels:
                served.cancel()
            raise
        finally:
            self._open.get(engine, {}).pop(answer, None)
            if self._cancels and caller is not None:
                caller.on_death.remove(give_up)
        await self._travel()
        if self._faults.strikes("reply_lost"):
            raise Unavailable("simulated: the answer was lost")
        return decode_json(data, operation.response_type)

    async def _serve(
        self,
        operation: Operation[Any, Any],
        body: bytes,
        server: "Server",
        answer: "asyncio.Future[bytes]",
        caller: Process | None,
    ) -> None:
        request = decode_json(body, operation.request_type)
        response: Any = None
        try:
            response = await server.serve(operation, request)
        except Exception as error:
            outcome: bytes | Exception = _as_sent(error)
        else:
            outcome = encode_json(response)
            if self.watch_reply is not None:
                self.watch_reply(operation, request, response)
        if answer.done() or (caller is not None and not caller.alive):
            if isinstance(outcome, bytes) and isinstance(response, _POLLED) and self._random.random() < 0.7:
                await server.undelivered(response)
            return
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    async def _travel(self) -> None:
        longest = 4.0 if self._faults.strikes("slow_network") else 0.01
        await asyncio.sleep(self._faults.delay(50.0 if self._faults.strikes("stalled_network") else longest))


def _as_sent(error: Exception) -> Exception:
    body = getattr(error, "body", None)
    return error_from(body()) if body is not None else error


class SimulatedTransport:
    """One process's way to the engine (``stepwell.transport.Transport``)."""

    def __init__(self, network: Network) -> None:
        self.call = network.call

    async def close(self) -> None:
        return
