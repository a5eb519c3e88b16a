"""Makes moto's DynamoDB fit to test on: atomic, transactions of the cost of what they touch, queries of the cost of
their partition, stream records as AWS has them. SQS takes a message at the same cost however many it has.

Plain moto has no lock and copies whole tables for each transaction; acknowledged writes vanish under load. This touches
internals, so moto is pinned, and a new version is taken only with the contract suites green. Call :func:`install`
before the first request.
"""

import copy
import functools
import json
import threading
import time
from typing import Any

from moto import backends
from moto.core import responses
from moto.core.exceptions import JsonRESTError
from moto.dynamodb import models
from moto.dynamodb import responses as dynamodb_responses
from moto.dynamodb.exceptions import (
    ConditionalCheckFailed,
    MultipleTransactionsException,
    TooManyTransactionsException,
    TransactionCanceledException,
    TransactWriteSingleOpException,
)
from moto.dynamodb.models import table as tables
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodbstreams import responses as stream_responses
from moto.sqs import models as queues

_lock = threading.RLock()
_scope = threading.local()
_tokens: dict[Any, tuple[str, float]] = {}
_TOKEN_SECONDS = 600

_original_all_items = tables.Table.all_items
_original_query = tables.Table.query
_original_add = tables.StreamShard.add
_original_send_message = queues.SQSBackend.send_message
_original_attributes = queues.Queue.attributes
_original_transaction = dynamodb_responses.DynamoHandler.transact_write_items


def install() -> None:
    tables.Table.all_items = _all_items
    tables.Table.query = _query
    tables.StreamShard.add = _add
    models.DynamoDBBackend.transact_write_items = _transact
    dynamodb_responses.DynamoHandler.transact_write_items = _answer_transaction
    for handler in (dynamodb_responses.DynamoHandler, stream_responses.DynamoDBStreamsHandler):
        _take_turns(handler, "call_action")
    _look_once()
    queues.SQSBackend.send_message = _send_message
    queues.Queue.attributes = property(_queue_attributes)


def _look_once() -> None:
    """What is found anew for each request and is always the same: folders of moto, methods of its classes."""
    modules = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: modules
    responses.method_names_from_class = functools.cache(responses.method_names_from_class)


def _send_message(self: Any, *arguments: Any, **options: Any) -> Any:
    _scope.sends = True
    try:
        return _original_send_message(self, *arguments, **options)
    finally:
        _scope.sends = False


def _queue_attributes(self: Any) -> dict[str, Any]:
    """Who sends wants to know about deduplication alone; the others are counts of messages, one by one."""
    return {} if getattr(_scope, "sends", False) and not self.fifo_queue else _original_attributes.fget(self)


def _take_turns(handler: Any, name: str) -> None:
    inner = getattr(handler, name)

    def locked(self: Any, *arguments: Any, **options: Any) -> Any:
        with _lock:
            return inner(self, *arguments, **options)

    setattr(handler, name, locked)


def _all_items(self: Any) -> Any:
    """During a query, the partition alone; an index need not be sorted here, the query does it."""
    hash_key = getattr(_scope, "hash_key", None)
    if hash_key is not None and _scope.table is self:
        found = self.items.get(hash_key)
        if found is None:
            return []
        return list(found.values()) if self.range_key_attr else [found]
    if getattr(_scope, "unsorted", False):
        return [item for part in self.items.values() for item in (part.values() if self.range_key_attr else (part,))]
    return _original_all_items(self)


def _query(self: Any, hash_key: Any, *arguments: Any, **options: Any) -> Any:
    index = options.get("index_name") or (arguments[6] if len(arguments) > 6 else None)
    if index:
        _scope.unsorted = True
    else:
        _scope.hash_key, _scope.table = hash_key, self
    try:
        return _original_query(self, hash_key, *arguments, **options)
    finally:
        _scope.hash_key = _scope.table = None
        _scope.unsorted = False


def _add(self: Any, old: Any, new: Any) -> None:
    """No record of a write that changed nothing; one record, not two, of an update that made an item."""
    if old is not None and new is not None and old.to_json() == new.to_json():
        return
    if old is None and self.items and self.items[-1].record["eventName"] == "INSERT":
        keys = {self.table.hash_key_attr: new.hash_key.to_json()}
        if self.table.range_key_attr:
            keys[self.table.range_key_attr] = new.range_key.to_json()
        if self.items[-1].record["dynamodb"]["Keys"] == keys:
            self.items.pop()
    _original_add(self, old, new)


class _Mismatch(JsonRESTError):
    code = 400

    def __init__(self) -> None:
        super().__init__(
            "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException", "Idempotent parameter mismatch"
        )


def _answer_transaction(self: Any) -> Any:
    """Adds what a client's token promises."""
    token = self.body.get("ClientRequestToken")
    if not token:
        return _original_transaction(self)
    key = (self.current_account, self.region, token)
    asked = json.dumps(self.body["TransactItems"], sort_keys=True, default=repr)
    if key in _tokens and time.time() - _tokens[key][1] < _TOKEN_SECONDS:
        if _tokens[key][0] != asked:
            raise _Mismatch
        return dynamodb_responses.ActionResult({"ConsumedCapacity": [], "ItemCollectionMetrics": {}})
    answer = _original_transaction(self)
    _tokens[key] = (asked, time.time())
    return answer


def _transact(self: Any, items: Any) -> None:
    if len(items) > 100:
        raise TooManyTransactionsException
    errors: list[Any] = []
    plan: list[Any] = []
    seen = set()
    for item in items:
        if len(item) > 1:
            raise TransactWriteSingleOpException
        kind, operation = next(iter(item.items()))
        table = self.get_table(operation["TableName"])
        source = operation["Item"] if kind == "Put" else operation["Key"]
        key = {name: source[name] for name in (table.hash_key_attr, table.range_key_attr) if name and name in source}
        identity = (table.name, json.dumps(key, sort_keys=True, default=repr))
        if identity in seen:
            raise MultipleTransactionsException
        seen.add(identity)
        there = self.get_item(operation["TableName"], key)
        errors.append(_unmet(operation, there))
        plan.append((kind, operation, table, key, there))
    if any(error[0] for error in errors):
        raise TransactionCanceledException(errors)
    _carry_out(self, plan)


def _unmet(operation: Any, there: Any) -> tuple[Any, Any, Any]:
    if operation.get("ConditionExpression") is None:
        return None, None, None
    condition = models.get_filter_expression(
        operation["ConditionExpression"],
        operation.get("ExpressionAttributeNames"),
        operation.get("ExpressionAttributeValues"),
    )
    if condition.expr(there):
        return None, None, None
    old = None
    if operation.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and there:
        old = there.to_json()["Attributes"]
    return "ConditionalCheckFailed", ConditionalCheckFailed(item=old).message, old


def _carry_out(self: Any, plan: list[Any]) -> None:
    undo: list[Any] = []
    marks: dict[int, Any] = {}
    for number, (kind, operation, table, key, there) in enumerate(plan):
        if table.stream_shard is not None:
            marks.setdefault(id(table), (table, len(table.stream_shard.items)))
        undo.append((table, key, copy.deepcopy(there)))
        try:
            if kind == "Put":
                self.put_item(operation["TableName"], operation["Item"])
            elif kind == "Delete":
                self.delete_item(operation["TableName"], key)
            elif kind == "Update":
                self.update_item(
                    operation["TableName"],
                    key,
                    update_expression=operation["UpdateExpression"],
                    expression_attribute_names=operation.get("ExpressionAttributeNames"),
                    expression_attribute_values=operation.get("ExpressionAttributeValues"),
                )
        except Exception as error:
            _undo(undo, marks)
            reason = "ValidationError" if "alid" in type(error).__name__ else type(error).__name__
            errors: list[Any] = [(None, None, None)] * len(plan)
            errors[number] = (reason, str(getattr(error, "message", error)), None)
            raise TransactionCanceledException(errors) from error


def _undo(undo: list[Any], marks: dict[int, Any]) -> None:
    for table, key, old in reversed(undo):
        hash_key = DynamoType(key[table.hash_key_attr])
        part, name = table.items, hash_key
        if table.range_key_attr:
            part, name = table.items[hash_key], DynamoType(key[table.range_key_attr])
        if old is None:
            part.pop(name, None)
        else:
            part[name] = old
    for table, length in marks.values():
        del table.stream_shard.items[length:]
