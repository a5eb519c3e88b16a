"""A run that this worker holds in memory between workflow tasks, and the worker's bounded store of them (WK-06)."""

import asyncio
from collections import OrderedDict
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from ..api.common import WorkflowExecution
from ..api.requests import ActivityOutcome, WorkflowTask
from ..replay.run import WorkflowRun
from .run_lock import RunLock

if TYPE_CHECKING:
    from .local_activities import LocalActivityRuns


class CachedRun:
    """``lock`` is held from feeding the workflow until the engine's answer: a run does one thing at a time."""

    __slots__ = (
        "_anchor",
        "_anchored_at",
        "_clock",
        "continuation_token",
        "ended",
        "evicted",
        "execution",
        "leases",
        "local",
        "lock",
        "next_task",
        "reports_ended",
        "run",
        "slow",
        "workflow_type",
    )

    def __init__(self, run: WorkflowRun, execution: WorkflowExecution, workflow_type: str) -> None:
        self.run = run
        self.workflow_type = workflow_type
        self.execution = execution
        self.lock = RunLock()
        self.continuation_token = b""
        """The right to send a fused step; empty when there is none."""
        self.ended: list[tuple[int, ActivityOutcome]] = []
        """Outcomes of leased activities (by scheduled event id) that the workflow has not seen yet."""
        self.leases: dict[int, bytes] = {}
        """Task tokens of leased activities that run here, by scheduled event id."""
        self.slow = False
        """Its last turn took so long that results must not wait for the next one (design section 6)."""
        self.local: LocalActivityRuns | None = None
        """Its local activities, once it has had one."""
        self.next_task: WorkflowTask | None = None
        """The workflow task that came with the answer to the last completion."""
        self.reports_ended = False
        """Its turn may last: activities that end now are not to wait for it."""
        self.evicted = False
        self._anchor: datetime | None = None
        self._anchored_at = 0.0
        self._clock = asyncio.get_running_loop().time

    def set_time(self, server_time: datetime) -> None:
        """A time of the server that has just passed; the workflow's time goes on from there by the event loop's
        monotonic clock, so it is never ahead of the server's."""
        self._anchor = server_time
        self._anchored_at = self._clock()

    def workflow_time(self) -> datetime:
        assert self._anchor is not None
        return self._anchor + timedelta(seconds=self._clock() - self._anchored_at)


class RunCache:
    """Least recently used runs are evicted when there are more than ``limit``; 0 keeps none between tasks."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._runs: OrderedDict[str, CachedRun] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, run_id: str) -> CachedRun | None:
        cached = self._runs.get(run_id)
        if cached is not None:
            self._runs.move_to_end(run_id)
        return cached

    def put(self, cached: CachedRun) -> None:
        """A run of the same id that was there before is evicted."""
        run_id = cached.execution.run_id
        before = self._runs.pop(run_id, None)
        if before is not None:
            _evict(before)
        self._runs[run_id] = cached
        if len(self._runs) > self.limit:
            self.trim()

    def trim(self) -> None:
        """Evict down to the limit; runs that are at work stay until they are done."""
        excess = len(self._runs) - self.limit
        if excess <= 0:
            return
        idle = (cached for cached in self._runs.values() if not cached.lock.locked)
        for cached in list(islice(idle, excess)):
            self.evict(cached)

    def evict(self, cached: CachedRun) -> None:
        run_id = cached.execution.run_id
        if self._runs.get(run_id) is cached:
            del self._runs[run_id]
        _evict(cached)

    def clear(self) -> None:
        for cached in self._runs.values():
            _evict(cached)
        self._runs.clear()


def _evict(cached: CachedRun) -> None:
    if not cached.evicted:
        cached.evicted = True
        cached.continuation_token = b""
        cached.run.evict()
        if cached.local is not None:
            cached.local.drop()
