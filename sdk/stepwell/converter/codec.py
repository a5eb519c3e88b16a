"""Payload codecs: bytes to bytes, such as encryption or compression, applied outside workflow code (so they may do
I/O).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from ..api.payloads import ENCODING, ENCODING_NULL, Payload

R = TypeVar("R")
_Step = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]


class PayloadCodec(ABC):
    """Changes payloads on their way out, and back on their way in. Both sides need the same codec."""

    @abstractmethod
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """As many payloads as were given."""

    @abstractmethod
    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Undo :meth:`encode`; payloads that it did not make are returned as they are."""


async def encode_record(codec: PayloadCodec | None, record: R) -> R:
    """A copy of a wire record (command, request, failure, …) with every payload in it encoded."""
    return record if codec is None else await _through(codec.encode, record)


async def decode_record(codec: PayloadCodec | None, record: R) -> R:
    """A copy of a wire record (event, task, response, …) with every payload in it decoded."""
    return record if codec is None else await _through(codec.decode, record)


async def _through(step: _Step, value: Any) -> Any:
    if isinstance(value, Payload):
        return (await step([value]))[0]
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, Payload) for item in value):
            return type(value)(await step(value))
        return type(value)([await _through(step, item) for item in value])
    if isinstance(value, dict):
        return {key: await _through(step, item) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        changes: dict[str, Any] = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            if isinstance(before, msgspec.Struct | tuple | list | dict):
                after = await _field(step, name, before)
                if after is not before:
                    changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value
    return value


async def _field(step: _Step, name: str, value: Any) -> Any:
    if name == "search_attributes":
        return value  # the engine looks for them
    if name == "upserted_memo":
        return {key: await _unless_null(step, item) for key, item in value.items()}
    return await _through(step, value)


async def _unless_null(step: _Step, value: Payload) -> Payload:
    """A null takes a name away, which the engine has to see."""
    return value if value.metadata.get(ENCODING) == ENCODING_NULL else (await step([value]))[0]
