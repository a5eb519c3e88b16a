"""Tables, bucket and queues of one cell, made with plain calls: for ``stepwell aws bootstrap`` and for tests.

A deployed installation gets the same from ``infra/cdk``. Everything here may be repeated, by two at once too: what is
there already is left as it is.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from .names import EXPIRY_ATTRIBUTE, STARTS_INDEX, Names
from .visibility_choice import ONE_TABLE, VisibilityChoice

_TABLE_READY_SECONDS = 60.0
_IN_USE = ("ResourceInUseException",)
_FOURTEEN_DAYS = 14 * 24 * 3600

_KEYS = (("pk", "HASH"), ("sk", "RANGE"))
_INDEX_KEYS = (("gp", "HASH"), ("gs", "RANGE"))
_INDEX_ATTRIBUTES = ("seq", "ty", "tq", "st", "ct", "hl", "hs", "fr", "m", EXPIRY_ATTRIBUTE)


def table_definitions(names: Names, visibility: VisibilityChoice = ONE_TABLE) -> list[dict[str, Any]]:
    """Parameters of CreateTable, on demand: all have ``pk`` and ``sk``, the stream is that of ``exec`` alone."""
    return [
        {**_definition(names.exec_table), "StreamSpecification": _STREAM},
        _definition(names.timer_table),
        _definition(names.ctl_table),
        *[
            {**_definition(table, _INDEX_KEYS), "GlobalSecondaryIndexes": [_STARTS]}
            for table in visibility.tables(names)
        ],
    ]


def create_tables(
    dynamodb: Any,
    names: Names,
    *,
    visibility: VisibilityChoice = ONE_TABLE,
    ready_seconds: float = _TABLE_READY_SECONDS,
) -> None:
    """With expiry and, where the endpoint knows it, point-in-time recovery; returns when all can be used."""
    definitions = table_definitions(names, visibility)
    made = [_unless(_IN_USE, partial(dynamodb.create_table, **definition)) for definition in definitions]
    for table, answer in zip(visibility.of_the_cell(names), made, strict=True):
        if answer is None or answer["TableDescription"]["TableStatus"] != "ACTIVE":
            _wait_until_active(dynamodb, table, ready_seconds)
        _expire(dynamodb, table)
        _recoverable(dynamodb, table)


def create_queues(sqs: Any, names: Names) -> dict[str, str]:
    """The delay queue of the timers and the queue of what the feed could not handle; their addresses by name."""
    attributes = {"MessageRetentionPeriod": str(_FOURTEEN_DAYS), "SqsManagedSseEnabled": "true"}
    queues = (names.timer_queue, names.failure_queue)
    return {queue: sqs.create_queue(QueueName=queue, Attributes=attributes)["QueueUrl"] for queue in queues}


def create_bucket(s3: Any, bucket: str, region: str) -> None:
    """Private and encrypted."""
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    _unless(("BucketAlreadyOwnedByYou",), lambda: s3.create_bucket(Bucket=bucket, **where))
    s3.put_public_access_block(
        Bucket=bucket,
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": True,
            "IgnorePublicAcls": True,
            "BlockPublicPolicy": True,
            "RestrictPublicBuckets": True,
        },
    )


def _definition(table: str, more_keys: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _schema(_KEYS),
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in (*_KEYS, *more_keys)],
    }


def _schema(keys: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in keys]


_STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
_STARTS = {
    "IndexName": STARTS_INDEX,
    "KeySchema": _schema(_INDEX_KEYS),
    # Memos and search attributes stay in the table alone, so that a row of the index is one write unit.
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(_INDEX_ATTRIBUTES)},
}


def _wait_until_active(dynamodb: Any, table: str, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while (status := dynamodb.describe_table(TableName=table)["Table"]["TableStatus"]) != "ACTIVE":
        if time.monotonic() > limit:
            raise TimeoutError(f"table {table} is still {status} after {seconds:.0f} s; run this again later")
        time.sleep(0.5)


def _expire(dynamodb: Any, table: str) -> None:
    state = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if state.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        specification = {"Enabled": True, "AttributeName": EXPIRY_ATTRIBUTE}
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)


def _recoverable(dynamodb: Any, table: str) -> None:
    """Emulators may not know it."""
    _unless(
        ("UnknownOperationException", "ContinuousBackupsUnavailableException"),
        lambda: dynamodb.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        ),
    )


def _unless(codes: tuple[str, ...], call: Callable[[], Any]) -> Any:
    """What the call answers; None when it failed with one of these."""
    try:
        return call()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") not in codes:
            raise
        return None
