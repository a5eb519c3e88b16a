"""Clients of AWS's services for one process and event loop: bounded retries, short timeouts, one kind of errors.

``AwsClients`` hands out a :class:`ServiceClient` per service; all of its calls go through ``call``, which raises what
``faults`` says. botocore's own retries are off, so that there is one set of rules for all.
"""

import asyncio
import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, NamedTuple

import aioboto3
import aiohttp
from aiobotocore.config import AioConfig
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from ...common import metric_names
from ...common.metrics import NO_METRICS, Metrics
from ...history.ports import StoreUnavailable
from .faults import AwsRefused, Throttled, fault_of, throttled, unavailable
from .lean_client import LeanDynamo


class Made(NamedTuple):
    """A call as it was made, with its answer or why there is none; each try is one."""

    service: str
    operation: str
    parameters: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    fault: Exception | None


Observer = Callable[[Made], None]


class Limits(NamedTuple):
    """How long one call may take: ``attempts`` tries of up to ``read_seconds``, with growing random pauses."""

    read_seconds: float
    attempts: int = 4
    connect_seconds: float = 1.0
    first_pause: float = 0.05
    longest_pause: float = 1.0


LIMITS: Mapping[str, Limits] = {
    "dynamodb": Limits(3.0),
    "dynamodbstreams": Limits(5.0),
    "s3": Limits(10.0),
    "sqs": Limits(25.0),  # holds a receive open for up to 20 s
    "secretsmanager": Limits(5.0),
    # 40 calls a second are free, for all of an account: a burst of new processes waits for its turn.
    "ssm": Limits(5.0, attempts=8, first_pause=0.2, longest_pause=2.0),
}
_CONNECTIONS = 64
_READ_TOGETHER = 100
_BATCH_ATTEMPTS = 8

_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError)


@cache
def process_session() -> Any:
    """The session of this process: credentials from the usual chain, found once and renewed by botocore."""
    return aioboto3.Session()


os.register_at_fork(after_in_child=process_session.cache_clear)


class AwsClients:
    """Belongs to the event loop that it is used on. The endpoint is ``endpoint_url``, else ``AWS_ENDPOINT_URL``'s."""

    def __init__(
        self,
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        session: Any = None,
        observer: Observer | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.observer = observer
        """Is told of each call, for counts."""
        self.metrics = metrics
        self._session = session or process_session()
        self._endpoint_url = endpoint_url
        self._region = region
        self._services: dict[str, ServiceClient] = {}
        self._opened = AsyncExitStack()

    def service(self, name: str) -> "ServiceClient":
        """By boto's name: ``dynamodb``, ``sqs``, ``s3``…; connects with its first call."""
        if name not in self._services:
            kind = DynamoClient if name == "dynamodb" else ServiceClient
            self._services[name] = kind(name, self, LIMITS[name])
        return self._services[name]

    async def open(self, name: str, limits: Limits) -> Any:
        config = AioConfig(
            connect_timeout=limits.connect_seconds,
            read_timeout=limits.read_seconds,
            max_pool_connections=_CONNECTIONS,
            retries={"total_max_attempts": 1},
            parameter_validation=False,
            tcp_keepalive=True,
        )
        try:
            made = self._session.client(name, region_name=self._region, endpoint_url=self._endpoint_url, config=config)
            return await self._opened.enter_async_context(made)
        except NoRegionError as error:
            raise AwsRefused(name, "any call", "", "NoRegion", "set AWS_REGION or AWS_DEFAULT_REGION") from error

    async def open_lean(self, client: Any, limits: Limits) -> LeanDynamo:
        """``client`` is botocore's."""
        credentials = await self._session.get_credentials()
        lean = LeanDynamo(client, credentials, limits.read_seconds, limits.connect_seconds, _CONNECTIONS)
        self._opened.push_async_callback(lean.close)
        return lean

    async def close(self) -> None:
        """May be called again; a call made later connects anew."""
        for service in self._services.values():
            service.forget()
        opened, self._opened = self._opened, AsyncExitStack()
        await opened.aclose()


class ServiceClient:
    def __init__(self, name: str, clients: AwsClients, limits: Limits) -> None:
        self.name = name
        self._clients = clients
        self._limits = limits
        self._client: Any = None
        self._opening = asyncio.Lock()

    async def call(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """``operation`` is boto's method name. Raises ConditionFailed, StoreUnavailable, AwsRefused. The body of an
        object of S3 is its bytes.

        A condition may fail because of an earlier try of this same call whose answer was lost: what is written under a
        condition has a nonce.
        """
        pause = self._limits.first_pause
        for attempt in range(1, self._limits.attempts + 1):
            try:
                answer = await self._send(operation, parameters)
            except Exception as fault:
                self._tell(operation, parameters, None, fault)
                if isinstance(fault, Throttled):
                    self._clients.metrics.count(metric_names.THROTTLES, service=self.name)
                if not isinstance(fault, StoreUnavailable) or attempt == self._limits.attempts:
                    raise
            else:
                self._tell(operation, parameters, answer, None)
                return answer
            await asyncio.sleep(random.uniform(0, pause))
            pause = min(2 * pause, self._limits.longest_pause)
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """One try."""
        client = self._client or await self._open()
        try:
            answer: dict[str, Any] = await getattr(client, operation)(**parameters)
        except (BotoCoreError, ClientError) as error:
            raise self._fault(operation, parameters, error) from error
        if operation == "get_object":
            answer["Body"] = await self._read(answer["Body"], parameters)
        return answer

    async def _read(self, body: Any, parameters: Mapping[str, Any]) -> bytes:
        """All of an object: one that breaks off is read again by another try, as with any other answer."""
        try:
            async with body:
                data: bytes = await body.read()
        except (BotoCoreError, aiohttp.ClientError, TimeoutError) as error:
            reason = f"the object broke off: {type(error).__name__}: {error}"
            raise unavailable(self.name, "get_object", _resource(parameters), reason) from error
        return data

    def _tell(
        self, operation: str, parameters: Mapping[str, Any], answer: Mapping[str, Any] | None, fault: Exception | None
    ) -> None:
        if (observer := self._clients.observer) is not None:
            observer(Made(self.name, operation, parameters, answer, fault))

    async def get_all(
        self, table: str, wanted: Sequence[Mapping[str, Any]], *, strong: bool, projection: str = ""
    ) -> list[Mapping[str, Any]]:
        """BatchGetItem over any number of different keys: in hundreds, and again for what came back undone (throttled,
        or over 16 MB). In no order. Names in ``projection`` that begin with # are those behind it."""
        chunks = [wanted[start : start + _READ_TOGETHER] for start in range(0, len(wanted), _READ_TOGETHER)]
        found = await asyncio.gather(*(self._get_batch(table, chunk, strong, projection) for chunk in chunks))
        return [item for part in found for item in part]

    async def _get_batch(
        self, table: str, wanted: Sequence[Mapping[str, Any]], strong: bool, projection: str
    ) -> list[Mapping[str, Any]]:
        request: dict[str, Any] = {"ConsistentRead": strong}
        if projection:
            names = [name for name in projection.split(", ") if name.startswith("#")]
            request["ProjectionExpression"] = projection
            request["ExpressionAttributeNames"] = {name: name[1:] for name in names}
        found: list[Mapping[str, Any]] = []
        pause = self._limits.first_pause
        for _ in range(_BATCH_ATTEMPTS):
            answer = await self.call("batch_get_item", RequestItems={table: {**request, "Keys": wanted}})
            found += answer.get("Responses", {}).get(table, [])
            wanted = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            if not wanted:
                return found
            self._clients.metrics.count(metric_names.THROTTLES, service=self.name)
            await asyncio.sleep(random.uniform(0, pause))
            pause *= 2
        raise throttled(self.name, "batch_get_item", table, "parts of a batch stay undone (throttled)")

    def forget(self) -> None:
        """The connections are closed; the next call opens others."""
        self._client = None

    async def raw(self) -> Any:
        """The client of aioboto3 itself, for what is no single call (paginators, streams of bytes)."""
        return self._client or await self._open()

    async def _open(self) -> Any:
        async with self._opening:
            if self._client is None:
                self._client = await self._clients.open(self.name, self._limits)
        return self._client

    def _fault(self, operation: str, parameters: Mapping[str, Any], error: Exception) -> Exception:
        resource = _resource(parameters)
        if isinstance(error, ClientError):
            answer: Mapping[str, Any] = error.response
            told = answer.get("Error", {})
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code, message = str(told.get("Code", "")), str(told.get("Message", ""))
            return fault_of(self.name, operation, resource, code, message, status, answer.get("Item"))
        if isinstance(error, _NO_CREDENTIALS):
            way_out = "there are no credentials in the environment, the configuration or the instance's role"
            return AwsRefused(self.name, operation, resource, type(error).__name__, way_out)
        if isinstance(error, HTTPClientError | BotoConnectionError):  # timeouts, refused and broken connections
            return unavailable(self.name, operation, resource, str(error))
        return AwsRefused(self.name, operation, resource, type(error).__name__, str(error))


class DynamoClient(ServiceClient):
    """DynamoDB, whose calls are most of all: those of the data path go by a client of our own (ADR 0009)."""

    _HOT = frozenset({"batch_get_item", "delete_item", "get_item", "put_item", "query", "update_item"})

    def __init__(self, name: str, clients: AwsClients, limits: Limits) -> None:
        super().__init__(name, clients, limits)
        self._lean: LeanDynamo | None = None

    async def _send(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if operation not in self._HOT:
            return await super()._send(operation, parameters)
        lean = self._lean or await self._open_lean()
        return await lean.send(operation, parameters, _resource(parameters))

    async def _open_lean(self) -> LeanDynamo:
        client = await self.raw()
        async with self._opening:
            if self._lean is None:
                self._lean = await self._clients.open_lean(client, self._limits)
        return self._lean

    def forget(self) -> None:
        super().forget()
        self._lean = None


def _resource(parameters: Mapping[str, Any]) -> str:
    for name in ("TableName", "QueueUrl", "QueueName", "Bucket", "StreamArn", "SecretId", "Name"):
        if name in parameters:
            return str(parameters[name])
    return ", ".join(parameters.get("RequestItems", ()))
