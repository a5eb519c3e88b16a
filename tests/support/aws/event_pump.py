"""What stands between a stream or a queue and a function, as Lambda's event source mappings have it and no emulator
does: batches, partial failures, bisection, a bounded number of tries, a failure destination; and, on purpose and by a
seed, records twice, in another order, and late.
"""

import base64
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Handler = Callable[[dict[str, Any], Any], Any]
StreamRecord = dict[str, Any]


@dataclass
class Faults:
    """Shares of records."""

    twice: float = 0.0
    late: float = 0.0
    swapped: float = 0.0
    lost: float = 0.0


@dataclass
class StreamPump:
    """One shard's mapping. ``feed`` takes records as the stream has them; ``run`` calls the function until nothing is
    left, or ``rounds`` times. ``failed`` is the failure destination."""

    handler: Handler
    rng: random.Random
    faults: Faults = field(default_factory=Faults)
    batch: int = 20
    tries: int = 4
    failed: list[StreamRecord] = field(default_factory=list)
    calls: int = 0
    _coming: list[StreamRecord] = field(default_factory=list)
    _held: list[StreamRecord] = field(default_factory=list)
    """Late ones."""

    def feed(self, records: Sequence[StreamRecord]) -> None:
        for record in records:
            if self.rng.random() < self.faults.lost:
                continue
            (self._held if self.rng.random() < self.faults.late else self._coming).append(record)
            if self.rng.random() < self.faults.twice:
                self._coming.insert(self.rng.randrange(len(self._coming) + 1), record)
        for at in range(1, len(self._coming)):
            # Each commit is an item of its own, and between items a stream promises no order.
            if self.rng.random() < self.faults.swapped:
                other = self.rng.randrange(at)
                self._coming[at], self._coming[other] = self._coming[other], self._coming[at]

    def run(self, rounds: int = 1_000_000) -> int:
        """Records that went to the function."""
        count = 0
        while (self._coming or self._held) and rounds:
            rounds -= 1
            if self._held and (not self._coming or self.rng.random() < 0.1):
                self._coming, self._held = self._coming + self._held, []
            batch, self._coming = self._coming[: self.batch], self._coming[self.batch :]
            count += len(batch)
            self._deliver(batch)
        return count

    def _deliver(self, batch: list[StreamRecord]) -> None:
        """Until all of it is done, or its tries are over: then what is left goes to the failure destination. That is
        all behind the record that fails as well, since the mapping knows no better."""
        for _ in range(self.tries):
            failing = self._call(batch)
            if failing is None:
                if len(batch) == 1:
                    continue
                half = len(batch) // 2  # the function itself failed: bisected
                self._deliver(batch[:half])
                self._deliver(batch[half:])
                return
            if failing == len(batch):
                return
            batch = batch[failing:]
        self.failed += batch

    def _call(self, batch: list[StreamRecord]) -> int | None:
        """From which record on the batch is to be delivered again; None when the function failed as a whole."""
        self.calls += 1
        try:
            answer = self.handler({"Records": [dict(record) for record in batch]}, None)
        except Exception:
            return None
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        places = [numbers.index(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
        return min(places, default=len(batch))


@dataclass
class QueuePump:
    """A queue's mapping: a message that a function failed with comes back when its lease ends, and goes to the failure
    destination after ``tries``."""

    sqs: Any
    url: str
    handler: Handler
    rng: random.Random
    tries: int = 4
    twice: float = 0.0
    failed: list[dict[str, Any]] = field(default_factory=list)
    context: Callable[[], Any] = lambda: None
    """Of each call."""

    def run(self) -> int:
        """Once through what is visible now; the number of messages that are done."""
        done = 0
        while messages := self._receive():
            records = [_sqs_record(message, self.url) for message in messages]
            if self.rng.random() < self.twice:
                records.append(records[0])
            try:
                answer = self.handler({"Records": records}, self.context())
                failing = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            except Exception:
                failing = {message["MessageId"] for message in messages}
            for message in messages:
                tried = int(message["Attributes"]["ApproximateReceiveCount"])
                if message["MessageId"] in failing and tried < self.tries:
                    continue
                if message["MessageId"] in failing:
                    self.failed.append(message)
                else:
                    done += 1
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return done

    def _receive(self) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages


def _sqs_record(message: Mapping[str, Any], url: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:" + ":".join(url.split("/")[-2:]),
    }


def as_event_record(record: Mapping[str, Any]) -> StreamRecord:
    """A record of GetRecords in the form in which functions get it."""
    change = record["dynamodb"]
    stamp = change["ApproximateCreationDateTime"]
    event = {
        **change,
        "ApproximateCreationDateTime": stamp.timestamp() if isinstance(stamp, datetime) else stamp,
        "Keys": {name: _json(typed) for name, typed in change["Keys"].items()},
    }
    if "NewImage" in change:
        event["NewImage"] = {name: _json(typed) for name, typed in change["NewImage"].items()}
    return {**record, "eventSource": "aws:dynamodb", "dynamodb": event}


def insert_record(item: Mapping[str, Mapping[str, Any]], number: int, landed: float) -> StreamRecord:
    """The record that a put of ``item`` (in DynamoDB's form) makes."""
    change = {
        "ApproximateCreationDateTime": landed,
        "Keys": {name: item[name] for name in ("pk", "sk")},
        "NewImage": item,
        "SequenceNumber": f"{number:021d}",
        "SizeBytes": 1,
        "StreamViewType": "NEW_IMAGE",
    }
    return as_event_record({"eventID": str(number), "eventName": "INSERT", "eventVersion": "1.1", "dynamodb": change})


def _json(typed: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, of),) = typed.items()
    return {kind: base64.b64encode(of).decode() if isinstance(of, bytes) else of}
