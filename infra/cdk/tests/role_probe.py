"""Makes the adapters' calls that one of the functions makes, with whatever credentials the environment has.

Run as a script with the name of a function: test_deploy.py runs it with that function's own permissions, which the
emulator enforces. A call that the role does not allow ends it with the adapter's own error.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta

from stepwell.api.enums import TaskQueueKind
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.sqs_delay_queue import SqsDelayQueue
from stepwell_server.adapters.aws.sqs_queues import SqsQueues
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.clock import Clock
from stepwell_server.common.control import ControlRecord
from stepwell_server.history.archives import Archives
from stepwell_server.history.commit import Commit
from stepwell_server.history.tasks import RecordVisibility
from stepwell_server.matching.queue_name import QueueName
from stepwell_server.timer_sweeper.arming import Arming
from stepwell_server.timer_sweeper.buckets import Layout, Partition
from stepwell_server.timer_sweeper.ports import Lease
from tests.support.aws.clock import StandingClock
from tests.support.listed import list_executions
from tests.support.sample_commits import EPOCH, SampleRun, sample_item

QUEUE = QueueName("shop", "orders", TaskQueueKind.WORKFLOW)
RUNS = {"frontend": 1, "feed": 2, "timers": 3}


class Probe:
    """One function's clients."""

    def __init__(self, function: str) -> None:
        self.settings = AwsSettings.from_environment()
        self.clients = AwsClients()
        self.clock: Clock = SystemClock()
        self.function = function
        self.delays = SqsDelayQueue(self.clients.service("sqs"), self.settings.names.timer_queue)
        self.queues = SqsQueues(self.clients.service("sqs"), self.settings.names)

    async def engine(self) -> tuple[Backend, list[Commit]]:
        """What whoever holds an engine does: reads and appends, activity items, markers, prefixes, deadlines, tasks."""
        clock = StandingClock(EPOCH)  # that of the sample runs, so that nothing has expired
        backend = await aws_backend(self.settings, clients=self.clients, clock=clock, soon=self.delays)
        now, later = clock.now(), self.clock.now() + timedelta(days=2)
        run = SampleRun(RUNS[self.function])
        commits = list(run.commits())
        key, log = commits[0].key, backend.log
        for commit in commits:
            # Far ahead of today: the functions that are deployed would fire one that is over, or near, in between.
            await log.append(commit, arm=later)
            assert await log.head(key) == commit
        await backend.timers.arm(next(SampleRun(9).commits()).key, now + timedelta(seconds=30))
        assert await log.get(key, 1) == commits[0]
        assert (await log.read_events(key, run.run_id, 0, 1000)).events
        assert await log.find_run(key, run.run_id)
        assert await log.find_run(key, "another") is None
        item = sample_item(run)
        await log.put_activity(item, arm=later)
        numbers = [item.scheduled_event_id]
        assert await log.activities(key, run.run_id, numbers) == [item]
        await log.put_marker(key, "m", b"1", expires_at=now + timedelta(hours=1), now=now)
        await log.put_prefix(key, "reset", -5, commits[0].events, now=now)
        await self.queues.send(QUEUE, "{}")
        assert await self.queues.pending(QUEUE) >= 0
        assert len(backend.token_key) >= 32
        assert backend.archive is not None
        archives, shown = Archives(backend.archive), commits[-1].tasks[0]
        assert isinstance(shown, RecordVisibility)
        await archives.write(commits[-1], shown, _pages(commits))
        assert await archives.erase(key, run.run_id) and not await archives.erase_some(key.namespace)
        return backend, commits

    async def frontend(self) -> None:
        backend, commits = await self.engine()
        namespace = commits[0].key.namespace
        await list_executions(backend.visibility, namespace, status=None, workflow_type="", after=None, limit=10)

    async def feed(self) -> None:
        backend, commits = await self.engine()
        for commit in commits:
            await backend.visibility.project(commit)
        assert backend.retention is not None
        await backend.retention.expire(commits[-1])

    async def timers(self) -> None:
        backend, commits = await self.engine()
        record = ControlRecord("probe", "shop", "p", 1, b"")
        record = await backend.control.put(record, arm=self.clock.now() + timedelta(days=2))
        assert await backend.control.list("probe", "shop", limit=9) == [record]
        await backend.control.delete(record)
        namespace, run = commits[0].key.namespace, commits[0].run_id
        await list_executions(backend.visibility, namespace, status=None, workflow_type="", after=None, limit=10)
        await backend.visibility.remove(commits[0].key, run, commits[-1].state.last_event_time)

    async def timer_tick(self) -> None:
        dynamodb = self.clients.service("dynamodb")
        names = self.settings.names
        rows, leases = TimerRows(dynamodb, names.timer_table), TimerLeases(dynamodb, names.ctl_table)
        now_ms = int(self.clock.now().timestamp() * 1000)
        partition = Partition(Layout().version, 0)
        assert await rows.since() <= now_ms
        assert await leases.change(Lease(partition, "probe", 1, now_ms + 1000, now_ms))
        assert len(await leases.held(partition.version)) == 1
        await rows.read(partition, now_ms - now_ms % 10_000, now_ms, now_ms + 1)
        key = next(SampleRun(9).commits()).key
        await Arming(rows, self.clock, self.delays).arm(key, self.clock.now() + timedelta(seconds=20))


async def _pages(commits: Sequence[Commit]) -> AsyncIterator[Sequence[HistoryEvent]]:
    for commit in commits:
        yield commit.events


async def main(function: str) -> None:
    probe = Probe(function)
    steps: dict[str, Callable[[], Awaitable[None]]] = {
        "frontend": probe.frontend,
        "feed": probe.feed,
        "timers": probe.timers,
        "timer-tick": probe.timer_tick,
    }
    try:
        await steps[function]()
    finally:
        await probe.clients.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
