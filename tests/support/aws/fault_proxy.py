"""A proxy before an emulator that does what emulators do not: conflicts, throttling, faults, answers that are lost.

It speaks as much HTTP as the clients of DynamoDB do: requests with a length, one at a time on a connection.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_WRITES = frozenset({"putitem", "updateitem", "deleteitem", "transactwriteitems", "batchwriteitem"})
_ERRORS: Mapping[str, tuple[int, str, str]] = {
    "conflict": (400, "TransactionConflictException", "Transaction is ongoing for the item"),
    "throttling": (400, "ProvisionedThroughputExceededException", "The level of configured throughput was exceeded"),
    "validation": (400, "ValidationException", "One or more parameter values were invalid (planted)"),
    "failure": (500, "InternalServerError", "Internal server error"),
}


@dataclass
class FaultProxy:
    """``rates``: of ``conflict``, ``throttling``, ``validation``, ``failure`` (nothing is carried out then) and ``cut``
    (carried out, and the connection breaks before the answer). Conflicts and validation hit writes alone."""

    upstream: str
    rates: Mapping[str, float]
    chance: random.Random
    url: str = ""
    done: Counter[str] = field(default_factory=Counter)
    on: bool = True
    planned: list[str] = field(default_factory=list)
    """Faults of the next writes, before chance decides."""
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Code and message of each call of an operation (``putitem``, or SQS's ``sendmessagebatch``), while it is there."""
    _serving: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        where = urlsplit(self.upstream)
        up_reader, up_writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            while True:
                head, body = await _message(reader)
                operation = _operation(head)
                if operation in self.refused:
                    self.done["refused"] += 1
                    writer.write(_error(400, *self.refused[operation]))
                    await writer.drain()
                    continue
                fault = self._pick(operation)
                if fault in _ERRORS:
                    writer.write(_error(*_ERRORS[fault]))
                    await writer.drain()
                    continue
                up_writer.write(head + body)
                answer = await _message(up_reader)
                if fault == "cut":
                    return
                writer.write(answer[0] + answer[1])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            for each in (up_writer, writer):
                each.close()

    def _pick(self, operation: str) -> str:
        self.done["calls"] += 1
        if self.on and self.planned and operation in _WRITES:
            fault = self.planned.pop(0)
            self.done[fault] += 1
            return fault
        left = self.chance.random() if self.on else 1.0
        for fault, rate in self.rates.items():
            left -= rate
            if left < 0:
                if fault in ("conflict", "validation") and operation not in _WRITES:
                    return ""
                self.done[fault] += 1
                return fault
        return ""

    async def close(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


@asynccontextmanager
async def fault_proxy(upstream: str, seed: int, **rates: float) -> AsyncIterator[FaultProxy]:
    proxy = FaultProxy(upstream, rates, random.Random(seed))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head, await reader.readexactly(int(length or 0))


def _operation(head: bytes) -> str:
    return head.lower().partition(b"x-amz-target: ")[2].partition(b"\r\n")[0].rpartition(b".")[2].decode()


def _error(status: int, code: str, message: str) -> bytes:
    body = f'{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"{message}"}}'.encode()
    return (
        f"HTTP/1.1 {status} Planted\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
