"""A stream with what no emulator has: shards that end and have children, iterators that expire, records that are
trimmed, calls that fail. Answers as the API does, through the one method that our clients have."""

import asyncio
from typing import Any

from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.stream_shards import ShardLease


class EmulatedStream:
    def __init__(self) -> None:
        self.shards: dict[str, list[dict[str, Any]]] = {}
        self.parents: dict[str, str] = {}
        self.closed: set[str] = set()
        self.gone: set[str] = set()
        self.raises: dict[str, list[Exception]] = {}
        self.calls: list[str] = []
        self._number = 0
        self._expired: set[str] = set()
        self._iterators = 0

    def add_shard(self, shard_id: str, parent: str = "") -> None:
        self.shards[shard_id] = []
        self.parents[shard_id] = parent

    def put(self, shard_id: str, name: str) -> None:
        self._number += 1
        change = {"SequenceNumber": f"{self._number:09d}", "Keys": {"pk": {"S": name}, "sk": {"S": "C#1"}}}
        self.shards[shard_id].append({"eventName": "INSERT", "dynamodb": change})

    def trim(self, shard_id: str, count: int) -> None:
        del self.shards[shard_id][:count]

    def expire_iterators(self) -> None:
        self._expired.update(str(number) for number in range(self._iterators + 1))

    async def call(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        self.calls.append(operation)
        if self.raises.get(operation):
            raise self.raises[operation].pop(0)
        answer: dict[str, Any] = getattr(self, f"_{operation}")(**parameters)
        return answer

    def _describe_stream(self, StreamArn: str, ExclusiveStartShardId: str = "") -> dict[str, Any]:
        """One shard a page."""
        names = [name for name in self.shards if name not in self.gone and name > ExclusiveStartShardId]
        names.sort()
        page = [{"ShardId": name, "ParentShardId": self.parents[name]} for name in names[:1]]
        more = {"LastEvaluatedShardId": names[0]} if len(names) > 1 else {}
        return {"StreamDescription": {"Shards": page, **more}}

    def _get_shard_iterator(
        self, StreamArn: str, ShardId: str, ShardIteratorType: str, SequenceNumber: str = ""
    ) -> dict[str, Any]:
        records = self.shards[ShardId]
        if SequenceNumber and records and records[0]["dynamodb"]["SequenceNumber"] > SequenceNumber:
            first = int(records[0]["dynamodb"]["SequenceNumber"])
            if first > int(SequenceNumber) + 1:
                raise AwsRefused("dynamodbstreams", "get_shard_iterator", "", "TrimmedDataAccessException", "trimmed")
        return {"ShardIterator": self._iterator(ShardId, SequenceNumber)}

    def _iterator(self, shard_id: str, after: str) -> str:
        self._iterators += 1
        return f"{self._iterators} {shard_id} {after}"

    def _get_records(self, ShardIterator: str, Limit: int) -> dict[str, Any]:
        number, shard_id, after = ShardIterator.split(" ")
        if number in self._expired:
            raise AwsRefused("dynamodbstreams", "get_records", "", "ExpiredIteratorException", "expired")
        records = [one for one in self.shards[shard_id] if one["dynamodb"]["SequenceNumber"] > after][:Limit]
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else after
        rest = [one for one in self.shards[shard_id] if one["dynamodb"]["SequenceNumber"] > last]
        ended = shard_id in self.closed and not rest
        return {"Records": records} | ({} if ended else {"NextShardIterator": self._iterator(shard_id, last)})


class MemoryLeases:
    """As ``ShardLeases``."""

    def __init__(self) -> None:
        self.leases: dict[str, ShardLease] = {}
        self.raises: list[Exception] = []

    async def all(self) -> dict[str, ShardLease]:
        return dict(self.leases)

    async def change(self, lease: ShardLease) -> bool:
        await asyncio.sleep(0)
        if self.raises:
            raise self.raises.pop()
        there = self.leases.get(lease.shard_id, ShardLease(lease.shard_id))
        if there.counter != lease.counter - 1:
            return there == lease
        self.leases[lease.shard_id] = lease
        return True
