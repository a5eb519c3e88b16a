"""Puts a payload codec between a client and its engine: every payload of every record passes through it."""

from typing import TypeVar

from ..api.operations import Operation
from ..converter import PayloadCodec, decode_record, encode_record
from . import Transport

Req = TypeVar("Req")
Resp = TypeVar("Resp")


class CodedTransport:
    """The engine sees only encoded payloads; workflow and activity code sees only decoded ones."""

    def __init__(self, transport: Transport, codec: PayloadCodec) -> None:
        self._transport = transport
        self._codec = codec

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        encoded = await encode_record(self._codec, request)
        return await decode_record(self._codec, await self._transport.call(operation, encoded))

    async def close(self) -> None:
        await self._transport.close()
