"""Schedules that are deleted and made anew all the time, while containers stand still between read and write: nothing
that was read before a deletion changes what was made behind it.

Nothing else goes wrong here, so that each answer says what is there from then on.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any
from unittest import mock

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api import schedules as s
from stepwell.api.enums import ScheduleOverlapPolicy

from stepwell_server.adapters.aws.control_table import ControlTable
from stepwell_server.common.control import ControlRecord
from stepwell_server.scheduler.state import KIND, ScheduleRecord
from tests.simulation.aws.containers import ContainerHost
from tests.simulation.aws.scheduled import ScheduledContainers
from tests.simulation.aws.world import AwsScenario
from tests.simulation.faults import CALM
from tests.simulation.loop import CURRENT_PROCESS, Process
from tests.simulation.schedules import QUEUE, ScheduleClient
from tests.simulation.violation import Violation

_OUTSIDE = contextvars.Context()
_get = ControlTable.get


class MadeAnew(ScheduledContainers):
    @staticmethod
    def draw(seed: int) -> AwsScenario:
        drawn = ScheduledContainers.draw(seed)
        return replace(
            drawn, rates=CALM, crashes=False, clock_jumps=False, clocks_apart=False, pauses=False, outage=0.0,
            drop_first_offers=False, objects=False, containers=2, clients=2, rough_time=60.0,
        )  # fmt: skip

    def build(self) -> None:
        super().build()
        self._stalls = Random(f"stalls {self.scenario.seed}")
        self.stalled: Process | None = None

    def _clients(self) -> list[asyncio.Task[None]]:
        clients = [AnewClient(self, number) for number in range(self.scenario.clients)]
        return [Process(client.id).spawn(client.live()) for client in clients]

    async def get(self, table: ControlTable, kind: str, namespace: str, id: str) -> ControlRecord | None:
        """Whoever has read a schedule may stand still then; one at a time, so that there is somebody who does not."""
        record = await _get(table, kind, namespace, id)
        process = CURRENT_PROCESS.get()
        if kind == KIND and record is not None and process is not None and self._stands_still(process):
            self.stalled = process
            self.witness.seen["stall"] += 1
            process.stand_still()
            seconds = self._stalls.choice([0.5, 1.0, 3.0, 8.0])
            asyncio.get_running_loop().call_later(seconds, self._go_on, process, context=_OUTSIDE)
            await asyncio.sleep(0.0)
        return record

    def _stands_still(self, process: Process) -> bool:
        return not (self.calm or self.stalled) and self._is_container(process) and self._stalls.random() < 0.3

    def _is_container(self, process: Process) -> bool:
        return any(host.process is process for host in self.engines if isinstance(host, ContainerHost))

    def _go_on(self, process: Process) -> None:
        self.stalled = None
        process.go_on()

    @contextlib.contextmanager
    def seams(self) -> Iterator[None]:
        def get(table: ControlTable, kind: str, namespace: str, id: str) -> Any:
            return self.get(table, kind, namespace, id)

        with super().seams(), mock.patch.object(ControlTable, "get", get):
            yield


class AnewClient(ScheduleClient):
    """Makes one, looks at it, and deletes it, again and again; each has a definition of its own."""

    _world: MadeAnew
    made = 0

    async def live(self) -> None:
        await asyncio.sleep(self._random.random() * 5.0)
        await self._make()
        while not self._world.calm:
            ends = self._world.loop.time() + self._random.random() * 6.0
            while self._world.stalled is None and self._world.loop.time() < ends:
                await asyncio.sleep(0.1)
            await self._look()
            await self._until_answered(o.DELETE_SCHEDULE, r.DeleteScheduleRequest(schedule_id=self.id))
            await self._make()
        await asyncio.sleep(60.0)
        await self._look()
        await self._patch(pause="the end")
        self._check(await self._settled())

    async def _make(self) -> None:
        self.made += 1
        start = s.NewWorkflowExecutionInfo(workflow_id=self._prefix(), workflow_type="quick", task_queue=QUEUE)
        policy = self._random.choice([ScheduleOverlapPolicy.ALLOW_ALL, ScheduleOverlapPolicy.TERMINATE_OTHER])
        self.schedule = s.Schedule(
            spec=s.ScheduleSpec(intervals=(s.ScheduleIntervalSpec(every=timedelta(seconds=2)),)),
            action=s.ScheduleAction(start_workflow=start),
            policies=s.SchedulePolicies(overlap_policy=policy),
        )
        create = r.CreateScheduleRequest(schedule_id=self.id, schedule=self.schedule, request_id=self._request_id())
        answer = await self._until_answered(o.CREATE_SCHEDULE, create)
        self._incarnation = answer.conflict_token.split(b":")[0]

    async def _look(self) -> None:
        """What is there is what was made last."""
        described = await self._until_answered(o.DESCRIBE_SCHEDULE, r.DescribeScheduleRequest(schedule_id=self.id))
        if described.conflict_token.split(b":")[0] != self._incarnation:
            raise Violation(f"{self.id}: a deleted one was written over the one that was made last")

    def _prefix(self) -> str:
        return f"{self.id}-run-{self.made}"

    def _check(self, record: ScheduleRecord) -> None:
        if record.incarnation.encode() != self._incarnation:
            raise Violation(f"{self.id}: what is there at the end is not what was made last")
        super()._check(record)
