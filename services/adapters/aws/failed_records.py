"""Records of the stream that could not be handled, in the queue of failures: where they stand, and why. No payloads.

The form is that of the messages that Lambda's own mapping sends there, so that people and alarms see one kind.
"""

from typing import Any

import msgspec

from ...common.clock import Clock
from .client import ServiceClient
from .names import Names
from .stream_records import Record, name_of, number_of

_MAX_REASON = 2_000


class FailedRecords:
    """Of one stream."""

    def __init__(self, sqs: ServiceClient, names: Names, stream_arn: str, clock: Clock) -> None:
        self._sqs = sqs
        self._queue = names.failure_queue
        self._stream_arn = stream_arn
        self._clock = clock
        self._url = ""

    async def keep(self, record: Record, shard_id: str, error: Exception) -> None:
        """Raises StoreUnavailable, AwsRefused."""
        if not self._url:
            self._url = (await self._sqs.call("get_queue_url", QueueName=self._queue))["QueueUrl"]
        number = number_of(record)
        told: dict[str, Any] = {
            "requestContext": {"condition": "RetryAttemptsExhausted"},
            "version": "1.0",
            "timestamp": self._clock.now().isoformat(),
            "DDBStreamBatchInfo": {
                "shardId": shard_id,
                "startSequenceNumber": number,
                "endSequenceNumber": number,
                "batchSize": 1,
                "streamArn": self._stream_arn,
            },
            "record": name_of(record),
            "reason": f"{type(error).__name__}: {error}"[:_MAX_REASON],
        }
        await self._sqs.call("send_message", QueueUrl=self._url, MessageBody=msgspec.json.encode(told).decode())
