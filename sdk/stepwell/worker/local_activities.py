"""Runs the local activities of one run, with their retries, until they end or their next attempt is far off (AC-24)."""

import asyncio
from datetime import timedelta

from ..activity import ActivityCancellationDetails
from ..api.enums import RetryState, TimeoutType, WorkflowTaskFailedCause
from ..api.failures import ApplicationFailureInfo, Failure, TimeoutFailureInfo
from ..api.requests import ActivityCanceled, ActivityCompleted, ActivityFailed, ActivityOutcome, ActivityPending
from ..replay.errors import WorkflowTaskError
from ..replay.machines.local_activity import LocalActivityCall, LocalActivityEnd, LocalActivityStop
from .activity_worker import ActivityWorker
from .attempt import Attempt
from .cached_run import CachedRun
from .local_attempt import LocalAttempt, local_task
from .local_retry import next_attempt
from .slots import Slots

_TIMEOUTS = {
    TimeoutType.START_TO_CLOSE: "start-to-close timeout: the attempt took longer than it may",
    TimeoutType.SCHEDULE_TO_START: "schedule-to-start timeout: no slot of the worker became free in time",
    TimeoutType.SCHEDULE_TO_CLOSE: "schedule-to-close timeout: the activity's overall deadline has passed",
}

_NO_ASYNC = Failure(
    message="a local activity cannot be completed later, by token or ids; call it by workflow.execute_activity",
    info=ApplicationFailureInfo(failure_type="AsyncCompletionOfLocalActivity", non_retryable=True),
)


class _Running:
    """One activity, over those of its attempts that are made here."""

    __slots__ = ("attempt", "call", "number", "stopping", "task")

    def __init__(self, call: LocalActivityCall) -> None:
        self.call = call
        self.number = call.attempt
        self.attempt: Attempt | None = None
        """The attempt that runs now; None while it waits for a slot or for the next attempt."""
        self.stopping = False
        self.task: asyncio.Task[None] | None = None


class LocalActivityRuns:
    """Of one run that this worker holds. Dropped with it: what still runs is asked to stop, and counts for nothing."""

    def __init__(self, cached: CachedRun, activities: ActivityWorker, slots: Slots) -> None:
        self._cached = cached
        self._activities = activities
        self._slots = slots
        self._running: dict[str, _Running] = {}
        self._ended: list[LocalActivityEnd] = []
        self._news = asyncio.Event()
        self._began = 0.0
        self._dropped = False
        self.shut_down = False
        """The worker stops: an attempt was cut off, and the run has to go on elsewhere."""
        self.askable = asyncio.Event()
        """Code of the run waits, and may be asked something."""

    @property
    def pending(self) -> bool:
        """Something runs, or has ended and is not handed over."""
        return bool(self._running or self._ended)

    @property
    def pending_for(self) -> float:
        """Seconds since there was nothing pending."""
        return self._activities.loop.time() - self._began

    def start(self, calls: list[LocalActivityCall]) -> None:
        """Raises :class:`WorkflowTaskError` for an activity that this worker does not have."""
        for call in calls:
            if self._activities.definition(call.activity_type) is None:
                raise self._unknown(call)
            if not self.pending:
                self._began = self._activities.loop.time()
            running = self._running[call.activity_id] = _Running(call)
            running.task = self._activities.spawn(self._run(running))

    def stop(self, stop: LocalActivityStop) -> None:
        running = self._running.get(stop.activity_id)
        if running is None:
            return
        waiting = running.attempt is None
        if waiting or not stop.awaited:
            del self._running[stop.activity_id]
            if stop.awaited:
                self._ended.append(self._end(running, canceled=True))
                self._news.set()
        running.stopping = True
        if waiting or stop.interrupt:
            self._interrupt(running, ActivityCancellationDetails(cancel_requested=True))

    def drop(self) -> None:
        """The run is given up."""
        self._dropped = True
        for running in list(self._running.values()):
            self._interrupt(running, ActivityCancellationDetails(not_found=True))
        self._running.clear()
        self._ended.clear()
        self._news.set()
        self.askable.set()

    async def next_ends(self, seconds: float) -> list[LocalActivityEnd]:
        """What ended, in that order; empty when that time has passed first, or there is no going on here."""
        if not self._ended and not self.shut_down and not self._dropped:
            self._news.clear()
            self.askable.set()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                pass
            finally:
                self.askable.clear()
        ends, self._ended = self._ended, []
        return ends

    # --- one activity ---

    async def _run(self, running: _Running) -> None:
        activity_id = running.call.activity_id
        try:
            end = await self._until_it_ends(running)
        except asyncio.CancelledError:
            if self._running.get(activity_id) is running:
                raise
            return  # it was stopped while it waited
        if self._running.get(activity_id) is not running:
            return
        if end is None:
            self.shut_down = True
        else:
            self._ended.append(end)
        del self._running[activity_id]
        self._news.set()

    async def _until_it_ends(self, running: _Running) -> LocalActivityEnd | None:
        """None when the worker's shutdown has cut it off."""
        call = running.call
        last = call.last_failure
        while True:
            outcome = await self._attempt(running, last)
            if outcome is None or (isinstance(outcome, ActivityFailed) and outcome.worker_shutdown):
                return None
            if isinstance(outcome, ActivityCompleted):
                return self._end(running, outcome=outcome)
            if isinstance(outcome, ActivityCanceled):
                return self._end(running, canceled=True)
            last = _NO_ASYNC if isinstance(outcome, ActivityPending) else outcome.failure
            if running.stopping:
                return self._end(running, failure=last, retry_state=RetryState.CANCEL_REQUESTED)
            wait = next_attempt(call.retry_policy, running.number, last, self._time_left(call))
            if isinstance(wait, RetryState):
                return self._failed(running, last, wait)
            if wait > call.local_retry_threshold:
                return self._end(running, failure=last, backoff=wait)
            running.number += 1
            await asyncio.sleep(wait.total_seconds())

    def _failed(self, running: _Running, failure: Failure, state: RetryState) -> LocalActivityEnd:
        if state is RetryState.TIMEOUT:
            message = "schedule-to-close timeout: the next attempt would start after the activity's overall deadline"
            failure = _timeout(TimeoutType.SCHEDULE_TO_CLOSE, failure, message)
        elif isinstance(failure.info, TimeoutFailureInfo) and state is RetryState.NON_RETRYABLE_FAILURE:
            state = RetryState.TIMEOUT
        return self._end(running, failure=failure, retry_state=state)

    async def _attempt(self, running: _Running, last: Failure | None) -> ActivityOutcome | None:
        """None: cut off by the shutdown."""
        call = running.call
        left = _shorter(call.schedule_to_start_timeout, self._time_left(call))
        try:
            async with asyncio.timeout(left.total_seconds() if left is not None else None):
                await self._slots.wait_for_one()
        except TimeoutError:
            struck = TimeoutType.SCHEDULE_TO_CLOSE if left != call.schedule_to_start_timeout else None
            return ActivityFailed(task_token=b"", failure=_timeout(struck or TimeoutType.SCHEDULE_TO_START, last))
        if self._activities.grace_over:
            self._slots.give_back()
            return None
        return await self._with_slot(running, last)

    async def _with_slot(self, running: _Running, last: Failure | None) -> ActivityOutcome | None:
        activities, call = self._activities, running.call
        definition = activities.definition(call.activity_type)
        assert definition is not None
        task = local_task(self._cached, call, running.number, activities.task_queue, self._cached.workflow_time())
        attempt = LocalAttempt(activities, task, definition)
        work = activities.spawn(attempt.outcome())
        attempt.task_handle = work
        activities.local.add(attempt)

        def over(_: object) -> None:
            self._slots.give_back()
            activities.local.discard(attempt)

        work.add_done_callback(over)
        running.attempt = attempt
        left = self._time_left(call)
        limit = _shorter(call.start_to_close_timeout, left)
        try:
            done, _ = await asyncio.wait([work], timeout=None if limit is None else limit.total_seconds())
        finally:
            running.attempt = None
        if done:
            return work.result()
        # It may run on, in its slot; nobody waits for that.
        attempt.cancel(ActivityCancellationDetails(timed_out=True))
        struck = TimeoutType.START_TO_CLOSE if limit == call.start_to_close_timeout else TimeoutType.SCHEDULE_TO_CLOSE
        return ActivityFailed(task_token=b"", failure=_timeout(struck, last))

    def _interrupt(self, running: _Running, why: ActivityCancellationDetails) -> None:
        if running.attempt is not None:
            running.attempt.cancel(why)
        elif running.task is not None:
            running.task.cancel()

    def _time_left(self, call: LocalActivityCall) -> timedelta | None:
        """Of schedule-to-close; never below zero."""
        if call.schedule_to_close_timeout is None:
            return None
        passed = self._cached.workflow_time() - call.scheduled_time
        return max(call.schedule_to_close_timeout - passed, timedelta(0))

    def _end(
        self,
        running: _Running,
        *,
        outcome: ActivityCompleted | None = None,
        failure: Failure | None = None,
        retry_state: RetryState = RetryState.IN_PROGRESS,
        canceled: bool = False,
        backoff: timedelta | None = None,
    ) -> LocalActivityEnd:
        return LocalActivityEnd(
            running.call.activity_id,
            running.number,
            self._cached.workflow_time(),
            result=outcome.result if outcome is not None else (),
            failure=failure,
            retry_state=retry_state,
            canceled=canceled,
            backoff=backoff,
        )

    def _unknown(self, call: LocalActivityCall) -> WorkflowTaskError:
        activities = self._activities
        known = ", ".join(sorted(activities.activities)) or "none"
        message = (
            f"Local activity {call.activity_type!r} is not registered with worker {activities.info.identity} of task "
            f"queue {activities.task_queue!r}, which runs the workflow; registered are: {known}"
        )
        cause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        return WorkflowTaskError(cause, Failure(message=message))


def _timeout(kind: TimeoutType, cause: Failure | None, message: str = "") -> Failure:
    """``cause``: the last real failure, which a workflow may branch on (WC-06)."""
    return Failure(message=message or _TIMEOUTS[kind], cause=cause, info=TimeoutFailureInfo(timeout_type=kind))


def _shorter(one: timedelta | None, other: timedelta | None) -> timedelta | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
