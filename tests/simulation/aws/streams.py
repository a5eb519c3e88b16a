"""The stream of a table: shards that end and have children, iterators that expire, records that go after a day."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from stepwell_server.adapters.aws.faults import fault_of
from stepwell_server.common.clock import Clock

KEPT = timedelta(days=1)
_ITERATOR_SECONDS = 900.0
_DIGITS = 21


@dataclass
class _Shard:
    parent: str
    records: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False


class EmulatedStream:
    """``lost``: what is written from then on is in no record at all. ``out``: calls fail."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shards: dict[str, _Shard] = {}
        self._newest = self._open("")
        self.lost = False
        self.out = False

    def _open(self, parent: str) -> _Shard:
        shard = self._shards[f"shard-{len(self._shards):04d}"] = _Shard(parent)
        return shard

    def split(self) -> None:
        """The shard ends, and another one follows."""
        name = next(reversed(self._shards))
        self._newest.closed = True
        self._newest = self._open(name)

    def add(self, event: str, keys: Mapping[str, Any], image: Mapping[str, Any] | None, number: int) -> None:
        if self.lost:
            return
        change: dict[str, Any] = {
            "ApproximateCreationDateTime": self._clock.now(),
            "Keys": keys,
            "SequenceNumber": f"{number:0{_DIGITS}d}",
            "StreamViewType": "NEW_IMAGE",
        }
        if image is not None:
            change["NewImage"] = image
        self._newest.records.append({"eventID": str(number), "eventName": event, "dynamodb": change})

    def after(self, number: str) -> list[dict[str, Any]]:
        """All that is there behind that record, of all shards; for a mapping."""
        self._trim()
        return [
            record
            for shard in self._shards.values()
            for record in shard.records
            if record["dynamodb"]["SequenceNumber"] > number
        ]

    def _trim(self) -> None:
        oldest = self._clock.now() - KEPT
        for shard in self._shards.values():
            shard.records = [one for one in shard.records if one["dynamodb"]["ApproximateCreationDateTime"] >= oldest]

    # --- calls ---

    def call(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if self.out:
            raise fault_of("dynamodbstreams", operation, "", "InternalServerError", "simulated: an outage", 500, None)
        self._trim()
        answer: dict[str, Any] = getattr(self, f"_{operation}")(**parameters)
        return answer

    def _describe_stream(self, StreamArn: str, ExclusiveStartShardId: str = "") -> dict[str, Any]:
        names = [name for name in self._shards if name > ExclusiveStartShardId]
        page = [{"ShardId": name, "ParentShardId": self._shards[name].parent} for name in names[:2]]
        more = {"LastEvaluatedShardId": names[1]} if len(names) > 2 else {}
        return {"StreamDescription": {"Shards": page, **more}}

    def _get_shard_iterator(
        self, StreamArn: str, ShardId: str, ShardIteratorType: str, SequenceNumber: str = ""
    ) -> dict[str, Any]:
        return {"ShardIterator": self._iterator(ShardId, SequenceNumber)}

    def _iterator(self, shard_id: str, after: str) -> str:
        return f"{self._clock.monotonic()} {shard_id} {after}"

    def _get_records(self, ShardIterator: str, Limit: int) -> dict[str, Any]:
        made, shard_id, after = ShardIterator.split(" ")
        if self._clock.monotonic() - float(made) > _ITERATOR_SECONDS:
            raise fault_of("dynamodbstreams", "get_records", "", "ExpiredIteratorException", "expired", 400, None)
        shard = self._shards[shard_id]
        behind = [one for one in shard.records if one["dynamodb"]["SequenceNumber"] > after]
        records = behind[:Limit]
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else after
        ended = shard.closed and len(records) == len(behind)
        return {"Records": records} | ({} if ended else {"NextShardIterator": self._iterator(shard_id, last)})
