"""Where the key of task tokens is kept: all processes of an installation have the same, and it outlives them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.token_key import token_key
from stepwell_server.history.ports import StoreUnavailable
from tests.support.aws.cells import Cell
from tests.support.aws.fault_proxy import FaultProxy, fault_proxy


@pytest.fixture
def stored(cell: Cell) -> Iterator[Any]:
    """What an administrator sees of the parameters and secrets of this cell."""
    clients = {name: boto3.client(name, endpoint_url=cell.environment["AWS_ENDPOINT_URL"]) for name in _SERVICES}
    yield clients
    for client in clients.values():
        client.close()


_SERVICES = ("ssm", "secretsmanager", "kms")


def settings_of(cell: Cell, **more: Any) -> AwsSettings:
    names = cell.names
    given = {"token_key_secret": names.token_key_secret, "token_key_parameter": names.token_key_parameter}
    return AwsSettings(names.cell, cell.bucket, **{**given, **more})


async def key_of(settings: AwsSettings, proxy: FaultProxy | None = None) -> bytes:
    """As a process of its own has it."""
    clients = AwsClients(endpoint_url=proxy.url if proxy else None)
    try:
        return await token_key(clients, settings)
    finally:
        await clients.close()


async def test_the_first_process_makes_an_encrypted_parameter_and_all_others_read_it(cell: Cell, stored: Any) -> None:
    settings = settings_of(cell)
    keys = await asyncio.gather(*(key_of(settings) for _ in range(6)))
    assert len(set(keys)) == 1 and len(keys[0]) == 64
    assert await key_of(settings) == keys[0]
    found = stored["ssm"].get_parameter(Name=settings.token_key_parameter, WithDecryption=False)["Parameter"]
    assert (found["Type"], found["Version"]) == ("SecureString", 1)
    assert keys[0].decode() != found["Value"]


async def test_a_key_of_the_accounts_own_encrypts_it(cell: Cell, stored: Any) -> None:
    made = stored["kms"].create_key()["KeyMetadata"]["KeyId"]
    settings = settings_of(cell, kms_key=made)
    key = await key_of(settings)
    told = stored["ssm"].describe_parameters(
        ParameterFilters=[{"Key": "Name", "Values": [settings.token_key_parameter]}]
    )["Parameters"]
    assert [each["KeyId"] for each in told] == [made]
    assert await key_of(settings) == key


async def test_an_installation_that_had_a_secret_goes_on_with_its_text(cell: Cell, stored: Any) -> None:
    """What the secret signed stays good; then the secret may go."""
    old = "o" * 64
    stored["secretsmanager"].create_secret(Name=cell.names.token_key_secret, SecretString=old)
    assert await key_of(settings_of(cell)) == old.encode()
    assert await key_of(settings_of(cell, token_key_parameter="")) == old.encode(), "a process of the release before"
    stored["secretsmanager"].delete_secret(SecretId=cell.names.token_key_secret, ForceDeleteWithoutRecovery=True)
    assert await key_of(settings_of(cell)) == old.encode()


async def test_bytes_of_a_secret_that_no_parameter_can_hold_stay_where_they_are(cell: Cell, stored: Any) -> None:
    old = bytes(range(200, 248))
    stored["secretsmanager"].create_secret(Name=cell.names.token_key_secret, SecretBinary=old)
    assert await key_of(settings_of(cell)) == old
    assert await key_of(settings_of(cell)) == old


async def test_a_secret_that_is_to_be_deleted_is_one_that_nobody_wants(cell: Cell, stored: Any) -> None:
    stored["secretsmanager"].create_secret(Name=cell.names.token_key_secret, SecretString="o" * 64)
    stored["secretsmanager"].delete_secret(SecretId=cell.names.token_key_secret, RecoveryWindowInDays=7)
    assert await key_of(settings_of(cell)) not in (b"", b"o" * 64)


async def test_a_secret_that_may_not_be_read_makes_nobody_sign_with_a_new_key(cell: Cell, stored: Any) -> None:
    settings = settings_of(cell)
    async with fault_proxy(cell.environment["AWS_ENDPOINT_URL"], 1) as proxy:
        proxy.refused["getsecretvalue"] = ("AccessDeniedException", "not authorized")
        with pytest.raises(AwsRefused, match="lacks that permission"):
            await key_of(settings, proxy)
    with pytest.raises(stored["ssm"].exceptions.ParameterNotFound):
        stored["ssm"].get_parameter(Name=settings.token_key_parameter)


async def test_a_parameter_that_is_there_and_not_yet_seen_is_looked_for_again(cell: Cell) -> None:
    settings = settings_of(cell)
    key = await key_of(settings)
    async with fault_proxy(cell.environment["AWS_ENDPOINT_URL"], 1) as proxy:
        proxy.refused["getparameter"] = ("ParameterNotFound", "")
        with pytest.raises(StoreUnavailable, match="retry later"):
            await key_of(settings, proxy)
        refused, asking = proxy.done["refused"], asyncio.create_task(key_of(settings, proxy))
        while proxy.done["refused"] == refused:
            await asyncio.sleep(0.01)
        del proxy.refused["getparameter"]
        assert await asking == key


async def test_a_key_that_is_too_short_signs_nothing(cell: Cell, stored: Any) -> None:
    settings = settings_of(cell)
    stored["ssm"].put_parameter(Name=settings.token_key_parameter, Value="short", Type="SecureString")
    with pytest.raises(AwsRefused, match="at least 32 bytes"):
        await key_of(settings)


async def test_who_signs_nothing_asks_for_no_key(cell: Cell, stored: Any) -> None:
    await key_of(settings_of(cell, signs_tokens=False))
    with pytest.raises(stored["ssm"].exceptions.ParameterNotFound):
        stored["ssm"].get_parameter(Name=cell.names.token_key_parameter)
