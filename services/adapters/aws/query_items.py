"""Queries that wait for their answers, as items of the control table that live as long as their callers wait.

``b`` is what is asked and ``a`` what was answered, ``u`` when nobody waits any more (milliseconds), ``x`` the same for
the table's own clean-up. What is too large for an item is a blob (``br``, ``ar``), which the bucket expires.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import msgspec
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.requests import QueryWorkflowRequest

from ...common.blobs import BlobMissing, BlobStore
from ...common.clock import Clock
from ...history.codec import pack, unpack
from ...history.ports import QueryAnswer
from ...timer_sweeper.buckets import EPOCH
from .attributes import Value, from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import seconds
from .faults import ConditionFailed

MOST_INLINE = 64 * 1024
"""Larger ones are blobs: an item of 64 KB costs 64 write units, a blob 8."""

_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.25
_MILLISECOND = timedelta(milliseconds=1)


class _Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    result: Payloads = ()
    failure: Failure | None = None
    again: bool = False


_encode = msgspec.msgpack.Encoder().encode
_request = msgspec.msgpack.Decoder(QueryWorkflowRequest)
_answer = msgspec.msgpack.Decoder(_Answer)


class QueryItems:
    """Implements ``history.ports.QueryBoard``. Who waits looks again, more and more seldom, up to four times a
    second."""

    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock, blobs: BlobStore) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._blobs = blobs
        self._stopped = asyncio.Event()

    async def post(self, query_id: str, request: QueryWorkflowRequest, *, expires_at: datetime) -> None:
        item = {
            **_key(query_id),
            **await self._stored(query_id, "b", _encode(request)),
            "u": (expires_at - EPOCH) // _MILLISECOND,
            "x": seconds(expires_at) + 60,
        }
        await self._dynamodb.call("put_item", TableName=self._table, Item=to_attributes(item))

    async def asked(self, query_id: str) -> QueryWorkflowRequest | None:
        item = await self._item(query_id)
        if item is None or "a" in item or "ar" in item or item["u"] <= self._now():
            return None
        data = await self._loaded(item, "b")
        return None if data is None else _request.decode(data)

    async def answer(self, query_id: str, answer: QueryAnswer) -> bool:
        stored = await self._stored(query_id, "a", _encode(_Answer(*answer)))
        ((name, data),) = stored.items()
        try:
            await self._dynamodb.call(
                "update_item",
                TableName=self._table,
                Key=to_attributes(_key(query_id)),
                UpdateExpression="SET #a = :a",
                ConditionExpression="attribute_exists(pk) AND u > :now AND attribute_not_exists(a) "
                "AND attribute_not_exists(ar)",
                ExpressionAttributeNames={"#a": name},
                ExpressionAttributeValues={":a": value(data), ":now": value(self._now())},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            # A lost answer of our own update is told by what is there.
            return failed.item is not None and from_attributes(failed.item).get(name) == data
        return True

    async def wait(self, query_id: str, seconds: float) -> QueryAnswer | None:
        ends = self._clock.monotonic() + seconds
        pause = _FIRST_LOOK
        while True:
            item = await self._item(query_id)
            if item is not None and ("a" in item or "ar" in item):
                data = await self._loaded(item, "a")
                if data is not None:
                    answer = _answer.decode(data)
                    return QueryAnswer(answer.result, answer.failure, answer.again)
            left = ends - self._clock.monotonic()
            if left <= 0 or self._stopped.is_set():
                return None
            await self._pause(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_LOOK)

    async def remove(self, query_id: str) -> None:
        """By its expiry, which costs nothing."""

    def stop(self) -> None:
        self._stopped.set()

    async def _pause(self, pause: float) -> None:
        try:
            await asyncio.wait_for(self._stopped.wait(), pause)
        except TimeoutError:
            return

    async def _item(self, query_id: str) -> dict[str, Any] | None:
        found = await self._dynamodb.call(
            "get_item", TableName=self._table, Key=to_attributes(_key(query_id)), ConsistentRead=True
        )
        return from_attributes(found["Item"]) if "Item" in found else None

    async def _stored(self, query_id: str, name: str, data: bytes) -> dict[str, Value]:
        packed = pack(data)
        if len(packed) <= MOST_INLINE:
            return {name: packed}
        key = f"q/{query_id}/{name}"
        await self._blobs.put(key, packed)
        return {f"{name}r": key}

    async def _loaded(self, item: dict[str, Any], name: str) -> bytes | None:
        """None when the bucket has expired it."""
        packed = item.get(name)
        if packed is None:
            try:
                packed = await self._blobs.get(item[f"{name}r"])
            except BlobMissing:
                return None
        return unpack(packed)

    def _now(self) -> int:
        return (self._clock.now() - EPOCH) // _MILLISECOND


def _key(query_id: str) -> dict[str, Value]:
    return {"pk": f"QUERY#{query_id}", "sk": "q"}
