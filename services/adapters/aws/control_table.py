"""ControlStore on the control table: the form of its items as a pynamodb model, its calls by the one client.

The model says attributes, types and conditions; it never calls by itself, since that would block the event loop, with
retries, errors and credentials of its own. A wake-up is a row of the timer table that awaits the record's version.
"""

import contextlib
from datetime import datetime
from functools import cache
from typing import Any

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.models import Model

from ...common.clock import IdSource
from ...common.control import ControlConflict, ControlRecord, check_size, is_another, wake_up_id
from ...history.commit import Awaited, ExecutionKey
from ...history.ports import StoreUnavailable
from ...timer_sweeper.arming import Arming
from .attributes import Attributes, to_attributes
from .client import ServiceClient
from .faults import ConditionFailed


class ControlItem(Model):
    """pk ``CTL#{kind}#{namespace}``, sk the record's id; ``w`` is of the one write, to know it again; ``n`` the
    incarnation, which items of the first release lack."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    version = NumberAttribute(attr_name="i")
    value = BinaryAttribute(attr_name="v", legacy_encoding=False)
    write = UnicodeAttribute(attr_name="w")
    incarnation = UnicodeAttribute(attr_name="n", null=True)


@cache
def model_of(table: str) -> type[ControlItem]:
    """Of one cell's table."""
    return type("ControlItem", (ControlItem,), {"Meta": type("Meta", (), {"table_name": table})})


class ControlTable:
    def __init__(self, dynamodb: ServiceClient, table: str, arming: Arming, ids: IdSource) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._arming = arming
        self._ids = ids

    async def get(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        key = to_attributes({"pk": _partition_key(kind, namespace), "sk": id})
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=key, ConsistentRead=True)
        return _record(answer.get("Item"))

    async def put(self, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        check_size(record)
        known = _is(record, record.version - 1)
        if record.version == 1:
            record, known = record._replace(incarnation=self._ids.nonce()), ControlItem.pk.does_not_exist()
        row = None
        if arm is not None:
            key = ExecutionKey(record.namespace, wake_up_id(record.kind, record.id))
            row = await self._arming.arm(key, arm, Awaited(seq=record.version, run_id=record.incarnation))
        item = self._item(record)
        parameters = item.get_save_kwargs_from_instance(known, return_values_on_condition_failure="ALL_OLD")
        try:
            await self._dynamodb.call("put_item", **parameters)
        except ConditionFailed as failed:
            if failed.item is None or failed.item["w"]["S"] != item.write:
                raise ControlConflict(_record(failed.item)) from None
            # An earlier try of this very call, whose answer was lost.
        except StoreUnavailable:
            if row is not None:
                with contextlib.suppress(StoreUnavailable):
                    await self._arming.landed(row)  # it may have landed
            raise
        if row is not None:
            await self._arming.landed(row)
        return record

    async def delete(self, record: ControlRecord) -> None:
        known = _is(record, record.version) | ControlItem.pk.does_not_exist()
        parameters = self._item(record).get_delete_kwargs_from_instance(
            known, return_values_on_condition_failure="ALL_OLD"
        )
        try:
            await self._dynamodb.call("delete_item", **parameters)
        except ConditionFailed as failed:
            existing = _record(failed.item)
            if existing is None or not is_another(existing, record):
                raise ControlConflict(existing) from None

    async def list(self, kind: str, namespace: str, *, after: str = "", limit: int) -> list[ControlRecord]:
        pk = _partition_key(kind, namespace)
        found: list[ControlRecord] = []
        options = {"ExclusiveStartKey": to_attributes({"pk": pk, "sk": after})} if after else {}
        while len(found) < limit:
            answer = await self._dynamodb.call(
                "query",
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=to_attributes({":pk": pk}),
                Limit=limit - len(found),
                **options,
            )
            found += [record for item in answer["Items"] if (record := _record(item)) is not None]
            if "LastEvaluatedKey" not in answer:
                break
            options = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return found

    def _item(self, record: ControlRecord) -> ControlItem:
        return model_of(self._table)(
            _partition_key(record.kind, record.namespace),
            record.id,
            version=record.version,
            value=record.value,
            write=self._ids.nonce(),
            incarnation=record.incarnation or None,
        )


def _is(record: ControlRecord, version: int) -> Condition:
    there = ControlItem.incarnation
    same = there == record.incarnation if record.incarnation else there.does_not_exist()
    both: Condition = (ControlItem.version == version) & same
    return both


def _partition_key(kind: str, namespace: str) -> str:
    return f"CTL#{kind}#{namespace}"


def _record(attributes: Attributes | None) -> ControlRecord | None:
    if not attributes:
        return None
    given: Any = dict(attributes)
    item = ControlItem.from_raw_data(given)
    _, kind, namespace = item.pk.split("#", 2)
    return ControlRecord(kind, namespace, item.sk, int(item.version), bytes(item.value), item.incarnation or "")
