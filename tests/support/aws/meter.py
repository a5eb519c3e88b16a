"""What calls of a whole installation cost: DynamoDB's units by table and operation, requests to the API and to SQS,
calls of functions.
"""

from collections import Counter
from typing import Any, NamedTuple

from stepwell_server.adapters.aws.attributes import from_attributes
from stepwell_server.adapters.aws.client import Made
from stepwell_server.adapters.aws.faults import ConditionFailed
from stepwell_server.adapters.aws.timer_rows import _decode
from stepwell_server.timer_sweeper.buckets import TimerRow
from tests.support.aws.counting import AwsCounter


class Counted(NamedTuple):
    """What something cost. Keys of ``calls``, ``writes`` (write units), ``reads`` (read units) and ``stored`` (bytes)
    are table and operation. ``sqs``: requests of 64 KB, without receives that brought nothing. ``functions``: calls of
    functions other than the API's. ``lost_writes``: conditions that failed."""

    calls: dict[str, int]
    writes: dict[str, int]
    reads: dict[str, float]
    stored: dict[str, int]
    api: dict[str, int]
    sqs: dict[str, int]
    functions: dict[str, int]
    lost_writes: int = 0

    @property
    def write_units(self) -> int:
        return sum(self.writes.values())

    @property
    def read_units(self) -> float:
        return sum(self.reads.values())

    @property
    def retention_units(self) -> int:
        """Those of marking what a closed run left."""
        return self.writes.get("exec update_item", 0)

    def minus(self, other: "Counted") -> "Counted":
        parts: list[Any] = [
            {name: count - before.get(name, 0) for name, count in now.items() if count != before.get(name, 0)}
            for now, before in zip(self[:-1], other[:-1], strict=True)
        ]
        return Counted(*parts, self.lost_writes - other.lost_writes)


class Meter(AwsCounter):
    """Sees the calls of all processes of a cell, and notes the deadlines that they arm."""

    def __init__(self, dynamodb: Any) -> None:
        super().__init__(dynamodb)
        self.api: Counter[str] = Counter()
        self.sqs: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self.lost_writes = 0
        self.armed: list[TimerRow] = []

    def __call__(self, made: Made) -> None:
        if made.service != "sqs":
            super().__call__(made)
            self.lost_writes += isinstance(made.fault, ConditionFailed)
            if made.operation == "put_item" and made.parameters["TableName"].endswith("-timer"):
                self.armed.append(_decode(from_attributes(made.parameters["Item"])))
            return
        if made.operation == "get_queue_url" or (
            made.operation == "receive_message" and not (made.answer or {}).get("Messages")
        ):
            return  # once for each process; idle
        self.sqs[made.operation] += 1

    def reset(self) -> None:
        super().reset()
        for counts in (self.api, self.sqs, self.functions):
            counts.clear()
        self.lost_writes = 0

    def now(self) -> Counted:
        costs = {" ".join(where): cost for where, cost in self.costs.items()}
        return Counted(
            calls={name: cost.calls for name, cost in costs.items()},
            writes={name: cost.write_units for name, cost in costs.items() if cost.write_units},
            reads={name: cost.read_units for name, cost in costs.items() if cost.read_units},
            stored={name: cost.written_bytes for name, cost in costs.items() if cost.written_bytes},
            api=dict(self.api),
            sqs=dict(self.sqs),
            functions=dict(self.functions),
            lost_writes=self.lost_writes,
        )
