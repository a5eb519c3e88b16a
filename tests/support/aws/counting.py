"""Counts calls to AWS, their bytes and what DynamoDB would bill for them, by table and operation.

Units come from the sizes of the items themselves, since emulators report constants. What a call does not show (the size
of an item that was updated, deleted or read in part) is asked of the emulator by a client of its own, uncounted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepwell_server.adapters.aws.attributes import from_attributes, read_units, size, to_attributes, write_units
from stepwell_server.adapters.aws.client import Made
from stepwell_server.adapters.aws.faults import ConditionFailed
from stepwell_server.adapters.aws.tables import _INDEX_ATTRIBUTES


@dataclass
class Cost:
    calls: int = 0
    write_units: int = 0
    read_units: float = 0.0
    written_bytes: int = 0

    def add(self, other: "Cost") -> None:
        self.calls += other.calls
        self.write_units += other.write_units
        self.read_units += other.read_units
        self.written_bytes += other.written_bytes


@dataclass
class AwsCounter:
    """An observer of ``AwsClients``. ``dynamodb``: a plain client to look things up with."""

    dynamodb: Any
    costs: dict[tuple[str, str], Cost] = field(default_factory=dict)
    """By table (its last part), or service, and operation."""
    _index: dict[str, str] = field(default_factory=dict)
    """Partition of the index that each visibility record stands in."""

    def reset(self) -> None:
        self.costs.clear()

    @property
    def total(self) -> Cost:
        total = Cost()
        for cost in self.costs.values():
            total.add(cost)
        return total

    @property
    def calls(self) -> dict[str, int]:
        return {" ".join(where): cost.calls for where, cost in sorted(self.costs.items())}

    def __call__(self, made: Made) -> None:
        table = made.parameters.get("TableName") or next(iter(made.parameters.get("RequestItems", ())), "")
        where = (table.rpartition("-")[2] or made.service, made.operation)
        cost = self.costs.setdefault(where, Cost())
        cost.calls += 1
        count = getattr(self, f"_{made.operation}", None)
        if made.service == "dynamodb" and count is not None and (made.fault is None or _unmet(made)):
            count(cost, made)

    def _put_item(self, cost: Cost, made: Made) -> None:
        item = made.parameters["Item"]
        if isinstance(made.fault, ConditionFailed):
            cost.write_units += write_units(size(made.fault.item or {}))
            return
        self._written(cost, size(item))
        if "gp" in item:
            self._count_index(cost, item)

    def _count_index(self, cost: Cost, item: Mapping[str, Any]) -> None:
        """A record that changes its partition is deleted there and put here."""
        kept = {name: item[name] for name in ("pk", "sk", "gp", "gs", *_INDEX_ATTRIBUTES) if name in item}
        name = item["pk"]["S"] + " " + item["sk"]["S"]
        before = self._index.get(name)
        self._index[name] = item["gp"]["S"]
        moves = before is not None and before != item["gp"]["S"]
        cost.write_units += write_units(size(kept)) * (2 if moves else 1)

    def _update_item(self, cost: Cost, made: Made) -> None:
        self._written(cost, self._size_of(made), failed=made.fault is not None)

    _delete_item = _update_item

    def _get_item(self, cost: Cost, made: Made) -> None:
        cost.read_units += read_units(self._size_of(made), strong=made.parameters.get("ConsistentRead", False))

    def _batch_get_item(self, cost: Cost, made: Made) -> None:
        for table, request in made.parameters["RequestItems"].items():
            for key in request["Keys"]:
                item = self.dynamodb.get_item(TableName=table, Key=key).get("Item", {})
                cost.read_units += read_units(size(item), strong=request.get("ConsistentRead", False))

    def _query(self, cost: Cost, made: Made) -> None:
        """All that was looked at counts, also what a filter or a projection left out."""
        plain = {
            name: given
            for name, given in made.parameters.items()
            if name not in ("ProjectionExpression", "FilterExpression", "ExpressionAttributeValues")
        }
        named = made.parameters.get("KeyConditionExpression", "")
        given = made.parameters.get("ExpressionAttributeValues", {})
        plain["ExpressionAttributeValues"] = {name: of for name, of in given.items() if name in named}
        read = self.dynamodb.query(**plain)["Items"]
        cost.read_units += read_units(
            sum(size(item) for item in read), strong=made.parameters.get("ConsistentRead", False)
        )

    def _written(self, cost: Cost, item_bytes: int, *, failed: bool = False) -> None:
        cost.write_units += write_units(item_bytes)
        if not failed:
            cost.written_bytes += item_bytes

    def _size_of(self, made: Made) -> int:
        """The item as it is now."""
        there = self.dynamodb.get_item(
            TableName=made.parameters["TableName"], Key=made.parameters["Key"], ConsistentRead=True
        )
        return size(to_attributes(from_attributes(there.get("Item", {}))))


def _unmet(made: Made) -> bool:
    return isinstance(made.fault, ConditionFailed)
