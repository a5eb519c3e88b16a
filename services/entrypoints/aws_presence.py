"""Whether all of a cell is there, asked once before a container serves: a stack that is half made, or that of another
region, is said at once and in whole, and not with the first large payload or late record.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from ..adapters.aws.client import AwsClients
from ..adapters.aws.faults import AwsRefused
from ..adapters.aws.settings import AwsSettings

_NO_ITEM = {"pk": {"S": "PRESENCE"}, "sk": {"S": "none"}}


class CellIncomplete(Exception):
    """``str(error)`` is a sentence for people: all that is missing or closed to this process, with the way out."""


async def check_cell(settings: AwsSettings, clients: AwsClients) -> None:
    """By calls that the process makes anyhow, so that they need no right of their own. Raises CellIncomplete,
    StoreUnavailable."""
    names = settings.names
    if not settings.bucket:
        raise CellIncomplete(
            "STEPWELL_BUCKET is not set: large payloads have nowhere to go; `stepwell aws bootstrap` and the stack's "
            "output say its name"
        )
    dynamodb, sqs, s3 = (clients.service(name) for name in ("dynamodb", "sqs", "s3"))
    asked = [
        *(dynamodb.call("get_item", TableName=table, Key=_NO_ITEM) for table in settings.visibility.of_the_cell(names)),
        *(sqs.call("get_queue_url", QueueName=queue) for queue in (names.timer_queue, names.failure_queue)),
        s3.call("list_objects_v2", Bucket=settings.bucket, MaxKeys=1),
    ]
    refused = await asyncio.gather(*(_refusal(call) for call in asked))
    told = list(dict.fromkeys(filter(None, refused)))
    if told:
        raise CellIncomplete(f"cell {names.cell!r} is not complete: " + "; ".join(told))


async def _refusal(call: Coroutine[Any, Any, Any]) -> str:
    try:
        await call
    except AwsRefused as refused:
        return str(refused)
    return ""
