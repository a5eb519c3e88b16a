"""The key that signs task tokens: the same for all processes of an installation, and outliving them."""

import os
from typing import Any

from .attributes import from_attributes, to_attributes
from .client import AwsClients, ServiceClient
from .faults import AwsRefused, ConditionFailed
from .settings import AwsSettings

_BYTES = 32
_WHERE = {"pk": "SECRET#token", "sk": "key"}


async def token_key(clients: AwsClients, settings: AwsSettings) -> bytes:
    """That of the secret, or else that of the control table, which the first who asks makes; one that is good for
    nothing where none is needed."""
    if not settings.signs_tokens:
        return os.urandom(_BYTES)
    if settings.token_key_secret:
        return await _of_secret(clients, settings.token_key_secret)
    return await _of_table(clients.service("dynamodb"), settings.names.ctl_table)


def make_token_key(dynamodb: Any, table: str) -> None:
    """By a plain client of boto3: the same item, unless it is there."""
    try:
        dynamodb.put_item(
            TableName=table,
            Item=to_attributes({**_WHERE, "v": os.urandom(_BYTES)}),
            ConditionExpression="attribute_not_exists(pk)",
        )
    except dynamodb.exceptions.ConditionalCheckFailedException:
        return


async def _of_secret(clients: AwsClients, secret: str) -> bytes:
    answer = await clients.service("secretsmanager").call("get_secret_value", SecretId=secret)
    key = bytes(answer.get("SecretBinary") or b"") or str(answer.get("SecretString", "")).encode()
    if len(key) < _BYTES:
        raise AwsRefused(
            "secretsmanager", "get_secret_value", secret, "SecretTooShort", f"it needs at least {_BYTES} bytes"
        )
    return key


async def _of_table(dynamodb: ServiceClient, table: str) -> bytes:
    where = to_attributes(_WHERE)
    answer = await dynamodb.call("get_item", TableName=table, Key=where, ConsistentRead=True)
    if "Item" not in answer:
        made = os.urandom(_BYTES)
        try:
            await dynamodb.call(
                "put_item",
                TableName=table,
                Item=to_attributes({**_WHERE, "v": made}),
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            answer = {"Item": failed.item}
        else:
            return made
    key: bytes = from_attributes(answer["Item"])["v"]
    return key
