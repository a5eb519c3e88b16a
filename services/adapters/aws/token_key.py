"""The key that signs task tokens: the same for all processes of an installation, and outliving them.

A stack's processes keep it as an encrypted parameter of Systems Manager, which costs nothing; CloudFormation cannot
make one, so the first process does, and no process may replace it. An installation that had a secret in Secrets Manager
goes on with that secret's text, so what was signed before stays good.
"""

import asyncio
import os
import secrets
from typing import Any

from ...history.ports import StoreUnavailable
from .attributes import from_attributes, to_attributes
from .client import AwsClients, ServiceClient
from .faults import AwsRefused, ConditionFailed
from .settings import AwsSettings

_BYTES = 32
_WHERE = {"pk": "SECRET#token", "sk": "key"}
_LOOKS = 6
_BETWEEN_LOOKS = 0.2
_NO_PARAMETER = "ParameterNotFound"
_MADE_BY_ANOTHER = "ParameterAlreadyExists"
_NO_SECRET = frozenset({"ResourceNotFoundException", "InvalidRequestException"})
"""The latter of one that somebody has scheduled for deletion."""


async def token_key(clients: AwsClients, settings: AwsSettings) -> bytes:
    """That of the parameter, of the secret, or else that of the control table; the first and the last are made by the
    first who asks. One that is good for nothing where none is needed."""
    if not settings.signs_tokens:
        return os.urandom(_BYTES)
    if settings.token_key_parameter:
        return await _of_parameter(clients, settings)
    if settings.token_key_secret:
        return _checked("secretsmanager", settings.token_key_secret, await _secret(clients, settings.token_key_secret))
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


async def _of_parameter(clients: AwsClients, settings: AwsSettings) -> bytes:
    """What another process has just made may not be seen at once."""
    ssm, name = clients.service("ssm"), settings.token_key_parameter
    for _ in range(_LOOKS):
        if (found := await _parameter(ssm, name)) is not None:
            return _checked("ssm", name, found)
        key = await _key_before(clients, settings)
        if not key.isascii():
            return key  # somebody's own bytes, which no parameter can hold, stay in their secret
        if await _put_parameter(ssm, settings, key):
            return key
        await asyncio.sleep(_BETWEEN_LOOKS)
    raise StoreUnavailable(f"ssm has a parameter {name} and does not give it; retry later")


async def _parameter(ssm: ServiceClient, name: str) -> bytes | None:
    try:
        answer = await ssm.call("get_parameter", Name=name, WithDecryption=True)
    except AwsRefused as refused:
        if refused.code == _NO_PARAMETER:
            return None
        raise
    return str(answer["Parameter"]["Value"]).encode()


async def _put_parameter(ssm: ServiceClient, settings: AwsSettings, key: bytes) -> bool:
    """False where there is one. A try whose answer was lost is not ours to know: then it is read as anybody's."""
    encrypted = {"KeyId": settings.kms_key} if settings.kms_key else {}
    try:
        await ssm.call(
            "put_parameter",
            Name=settings.token_key_parameter,
            Description="Signs the tokens of workflow and activity tasks",
            Value=key.decode(),
            Type="SecureString",
            Tier="Standard",
            Overwrite=False,
            **encrypted,
        )
    except AwsRefused as refused:
        if refused.code == _MADE_BY_ANOTHER:
            return False
        raise
    return True


async def _key_before(clients: AwsClients, settings: AwsSettings) -> bytes:
    """The text of the secret that the installation had, or a new one."""
    if settings.token_key_secret:
        try:
            return _checked(
                "secretsmanager", settings.token_key_secret, await _secret(clients, settings.token_key_secret)
            )
        except AwsRefused as refused:
            if refused.code not in _NO_SECRET:
                raise
    return secrets.token_hex(_BYTES).encode()


async def _secret(clients: AwsClients, secret: str) -> bytes:
    answer = await clients.service("secretsmanager").call("get_secret_value", SecretId=secret)
    return bytes(answer.get("SecretBinary") or b"") or str(answer.get("SecretString", "")).encode()


def _checked(service: str, name: str, key: bytes) -> bytes:
    if len(key) < _BYTES:
        raise AwsRefused(service, "any use", name, "SecretTooShort", f"it needs at least {_BYTES} bytes")
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
