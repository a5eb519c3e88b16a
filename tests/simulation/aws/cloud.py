"""The services of one region, and how processes reach them: calls take time, are throttled, lose their answers, arrive
long after their caller has given up, and hit the moment in which the caller dies.

What clients do about it (bounded retries, one kind of errors) is the product's own: only one try is emulated.
"""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from stepwell_server.adapters.aws.client import LIMITS, AwsClients, Limits, ServiceClient
from stepwell_server.adapters.aws.faults import fault_of, unavailable
from stepwell_server.adapters.aws.names import Names
from stepwell_server.common.clock import Clock
from tests.simulation.aws.clocks import MachineClock
from tests.simulation.aws.dynamodb import EmulatedDynamo, OnWrite
from tests.simulation.aws.s3 import EmulatedS3
from tests.simulation.aws.sqs import EmulatedSqs
from tests.simulation.faults import Faults
from tests.simulation.loop import CURRENT_PROCESS, Process

_WRITES = frozenset({"put_item", "update_item", "delete_item", "put_object", "delete_objects"})
_THROTTLED = {"s3": ("SlowDown", 503)}
_SKEWED = {"s3": "RequestTimeTooSkewed"}
_LONGEST_WAY = 0.01
_LONGEST_STALL = 12.0


class Cloud:
    def __init__(
        self, names: Names, clock: Clock, random: Random, faults: Faults, on_write: OnWrite, *, lags: bool = True
    ) -> None:
        """``lags``: calls take time, and eventual reads may be behind."""
        self.longest_way = _LONGEST_WAY if lags else 0.0
        self.names = names
        self.faults = faults
        self.dynamodb = EmulatedDynamo(clock, random, on_write, page=random.choice([0, 0, 3]), lags=lags)
        self.dynamodb.create(*names.tables, stream_of=names.exec_table)
        self.sqs = EmulatedSqs(clock, random, faults)
        self.sqs.create(names.timer_queue, names.failure_queue)
        self.s3 = EmulatedS3()
        self.process = Process("cloud")
        self._random = random

    @property
    def stream(self) -> Any:
        return self.dynamodb.stream(self.names.exec_table)

    async def carry_out(self, service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        match service:
            case "dynamodb":
                return self.dynamodb.call(operation, parameters)
            case "dynamodbstreams":
                answer: dict[str, Any] = self.stream.call(operation, parameters)
                return answer
            case "sqs":
                return await self.sqs.call(operation, parameters)
            case "s3":
                return self.s3.call(operation, parameters)
        raise AssertionError(service)

    async def travel(self, way: float, operation: str, parameters: Mapping[str, Any], caller: Process | None) -> None:
        """How long a call is on its way."""
        await asyncio.sleep(way)

    async def arrives(self, service: str, operation: str, parameters: Mapping[str, Any], way: float) -> dict[str, Any]:
        """Goes on when the caller has died or given up: what is on its way is carried out."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.process.spawn(self._later(service, operation, parameters, way, answer, CURRENT_PROCESS.get()))
        return await answer

    async def _later(
        self,
        service: str,
        operation: str,
        parameters: Mapping[str, Any],
        way: float,
        answer: "asyncio.Future[dict[str, Any]]",
        caller: Process | None,
    ) -> None:
        await self.travel(way, operation, parameters, caller)
        outcome: dict[str, Any] | Exception
        try:
            outcome = await self.carry_out(service, operation, parameters)
        except Exception as error:
            outcome = error
        if answer.done() or (caller is not None and not caller.alive):
            return
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)


class CloudClients(AwsClients):
    """Of one process. ``clock``: that of its machine, which signs its calls."""

    def __init__(self, cloud: Cloud, clock: MachineClock | None = None) -> None:
        super().__init__(session=object())
        self.cloud = cloud
        self.clock = clock

    def service(self, name: str) -> ServiceClient:
        if name not in self._services:
            self._services[name] = _Client(name, self, LIMITS[name])
        return self._services[name]


class _Client(ServiceClient):
    def __init__(self, name: str, clients: CloudClients, limits: Limits) -> None:
        super().__init__(name, clients, limits)
        self._cloud = clients.cloud
        self._clock = clients.clock
        self._patience = limits.read_seconds

    async def _send(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        faults, name = self._cloud.faults, self.name
        writes = operation in _WRITES
        if writes:
            await faults.crash("crash_before_write")
        if self._clock is not None and self._clock.is_refused:
            code = _SKEWED.get(name, "InvalidSignatureException")
            raise fault_of(name, operation, "", code, "simulated: Signature expired", 403, None)
        if faults.strikes("throttled"):
            code, status = _THROTTLED.get(name, ("ProvisionedThroughputExceededException", 400))
            raise fault_of(name, operation, "", code, "simulated: throttled", status, None)
        if writes and name == "dynamodb" and faults.strikes("conflicted"):
            code = "TransactionConflictException"
            raise fault_of(name, operation, "", code, "simulated: a transaction is under way", 400, None)
        stalls = name in ("dynamodb", "s3") and faults.strikes("stalled_call")
        way = faults.delay(_LONGEST_STALL if stalls else self._cloud.longest_way)
        try:
            async with asyncio.timeout(self._patience):
                answer = await self._cloud.arrives(name, operation, parameters, way)
        except TimeoutError as error:
            raise unavailable(name, operation, "", "simulated: no answer in time") from error
        if writes:
            await faults.crash("crash_after_write")
        if faults.strikes("write_answer_lost" if writes else "read_answer_lost"):
            raise unavailable(name, operation, "", "simulated: the answer was lost")
        return answer
