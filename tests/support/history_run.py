"""One workflow id driven through the pure core, as an engine would: every transition is checked on its way.

After each step the history obeys the protocol's rules and only grows, ``rebuild`` agrees with the state, and nothing is
due before the armed deadline.
"""

from collections.abc import Sequence
from copy import copy
from datetime import UTC, datetime, timedelta

from stepwell.api.codec import encode_json
from stepwell.api.commands import Command, ScheduleActivityTask, StartTimer
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import CompletionOutcome, WorkflowTaskFailedCause
from stepwell.api.events import HistoryEvent, WorkflowExecutionStarted
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.payloads import Payload, Payloads
from stepwell.api.requests import EagerActivities, StartWorkflowRequest

from stepwell_server.history import activity_attempts, activity_item, deadlines
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.apply import apply, durable_part, rebuild
from stepwell_server.history.commit import ClosedRun
from stepwell_server.history.machines import chain, workflow_task
from stepwell_server.history.requests import (
    CompleteWorkflowTask,
    EndLeases,
    FailWorkflowTask,
    FinishedActivity,
    FireDeadline,
    LeasedOutcome,
    NextRun,
    RecordFinishedActivities,
    RecordLeasedOutcomes,
    Request,
    RequestCancel,
    Signal,
    Start,
    Terminate,
    Worker,
)
from stepwell_server.history.run_limits import RUN_LIMITS, RunLimits
from stepwell_server.history.state import ExecutionState
from stepwell_server.history.step import step
from stepwell_server.history.task_tokens import ContinuationToken, WorkflowTaskToken
from stepwell_server.history.transition import CompletionReply, Transition
from tests.simulation.history_rules import HistoryRules

T0 = datetime(2026, 1, 5, 9, tzinfo=UTC)
WORKER = Worker(identity="worker-1", build_id="b1", worker_key="k1")
EAGER = EagerActivities(task_queue="orders", slots=3)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def payload(text: str = "42") -> Payloads:
    return (Payload(metadata={"encoding": "json/plain"}, data=text.encode()),)


def declined(message: str = "card 42", **info: object) -> Failure:
    return Failure(message=message, info=ApplicationFailureInfo(failure_type="Declined", **info))  # type: ignore[arg-type]


def activity(activity_id: str = "1", **fields: object) -> ScheduleActivityTask:
    values: dict[str, object] = {
        "activity_type": "charge",
        "task_queue": "orders",
        "input": payload(),
        "start_to_close_timeout": seconds(10),
    }
    return ScheduleActivityTask(activity_id=activity_id, **(values | fields))  # type: ignore[arg-type]


def once(**fields: object) -> RetryPolicy:
    return RetryPolicy(maximum_attempts=1, **fields)  # type: ignore[arg-type]


def timer(timer_id: str = "1", after: float = 60) -> StartTimer:
    return StartTimer(timer_id=timer_id, start_to_fire_timeout=seconds(after))


class Run:
    """Has what the store would have: the head's state, the history, the activity items."""

    def __init__(self, **start: object) -> None:
        self.now = T0
        self.state: ExecutionState | None = None
        self.events: list[HistoryEvent] = []
        self.ended: dict[str, list[HistoryEvent]] = {}
        """Histories of the runs that were closed by the commit which opened the next one."""
        self.prefix: list[HistoryEvent] = []
        """What the run that a reset is about to make begins with."""
        self.items: dict[int, ActivityItem] = {}
        self.armed: list[datetime] = []
        """The timer rows that have not fired."""
        self._fired = T0
        """Latest time at which a deadline fired."""
        self.last: Transition | None = None
        self._rules = HistoryRules()
        self._folded: ExecutionState | None = None
        """What the events alone say."""
        if start.pop("begun", True):
            self.start(**start)

    @property
    def s(self) -> ExecutionState:
        assert self.state is not None
        return self.state

    @property
    def kinds(self) -> list[str]:
        return [event.event_type for event in self.events]

    def tail(self, count: int) -> list[str]:
        return self.kinds[-count:]

    def wait(self, count: float) -> "Run":
        self.now += seconds(count)
        return self

    # --- steps ---

    def step(self, request: Request) -> Transition:
        now = self.now if self.state is None else max(self.now, self.state.last_event_time)
        before = None if self.state is None else encode_json(self.state)
        transition = step(self.state, request, now)
        assert before is None or encode_json(self.state) == before, "step changed the state it was given"
        self.last = transition
        if transition.changed:
            self._commit(transition, now)
        else:
            assert transition.state is self.state
            assert transition.events == () and transition.tasks == () and transition.arm is None
        return transition

    def _commit(self, transition: Transition, now: datetime) -> None:
        state = transition.state
        assert state.seq == (self.state.seq + 1 if self.state is not None else 1)
        if transition.closed is not None:
            self._close(transition.closed)
        if self.state is None or state.run_id != self.state.run_id:
            self.events, self.items, self._rules, self._folded = [], {}, HistoryRules(), None
            assert state.first_seq == state.seq
            assert self.state is None or self.state.close_time is not None
            assert bool(state.prefix_tail_seq) == bool(self.prefix)
            self._add(state, self.prefix)
            self.prefix = []
        self._fold(state, transition.events)
        assert state.workflow_task is not None or state.buffered == ()
        self._check_deadline(transition, now)

    def _close(self, closed: ClosedRun) -> None:
        """The end of a run in the commit that opens the next."""
        state = closed.state
        assert self.state is not None and state.run_id == self.state.run_id and state.close_time is not None
        assert state.seq == self.state.seq + 1 and closed.events and state.buffered == ()
        self._fold(state, closed.events)
        self.ended[closed.run_id] = list(self.events)

    def _fold(self, state: ExecutionState, events: Sequence[HistoryEvent]) -> None:
        self.state = state
        self._add(state, events)
        dropped = self.last is not None and bool(self.last.rejected)
        assert (state.numbered_seq == state.seq) == (bool(events) or dropped)
        # a close by the server leaves the scheduled task behind, as in the field
        self._rules.end_of_commit(state.workflow_task is not None or state.close_time is not None)
        assert self._folded is not None and durable_part(self._folded) == durable_part(state)

    def _add(self, state: ExecutionState, events: Sequence[HistoryEvent]) -> None:
        for event in events:
            self._rules.add(event)  # demands that ids go on without a gap: the history only grows
            if self._folded is None:
                self._folded = rebuild([event], state.namespace, state.run_id)
            else:
                apply(self._folded, event)
        self.events.extend(events)

    def _check_deadline(self, transition: Transition, now: datetime) -> None:
        state = transition.state
        if transition.arm is not None:
            self.armed.append(transition.arm)
        due = deadlines.deadline(self._without_left_timers(state), now, self.items)
        if due is None:
            assert transition.deadline is None and transition.arm is None
            assert state.close_time is not None
            return
        assert state.armed is not None and transition.deadline is not None
        assert transition.arm in (None, state.armed)
        assert min(self.armed) <= due or due <= now, f"armed {self.armed}, but due {due}"

    def _without_left_timers(self, state: ExecutionState) -> ExecutionState:
        """A firing leaves due timers to the outstanding task. When the clock then goes back they look as if they were
        still to come, but nothing is owed for them: the end of that task shows or arms every timer."""
        if state.workflow_task is None or not state.timers:
            return state
        seen = copy(state)
        seen.timers = {key: timer for key, timer in state.timers.items() if timer.fire_time > self._fired}
        return seen

    # --- requests ---

    def start(self, run_id: str = "run-1", **fields: object) -> Transition:
        values: dict[str, object] = {"workflow_id": "order-1", "workflow_type": "fulfil", "task_queue": "orders"}
        asked = StartWorkflowRequest(**(values | fields))  # type: ignore[arg-type]
        return self.step(Start(run_id=run_id, start=asked))

    def signal(self, name: str = "ship", **fields: object) -> Transition:
        return self.step(Signal(run_id="", signal_name=name, **fields))  # type: ignore[arg-type]

    def cancel(self, **fields: object) -> Transition:
        return self.step(RequestCancel(run_id="", **fields))  # type: ignore[arg-type]

    def terminate(self, **fields: object) -> Transition:
        return self.step(Terminate(run_id="", **fields))  # type: ignore[arg-type]

    def finished(self) -> list[ActivityItem]:
        return [item for item in self.items.values() if activity_item.is_finished(item)]

    def begin(self, *, refused_closes: int = 0) -> WorkflowTaskToken:
        self.shown_token, self.shown = workflow_task.begin(
            self.s, self.now, self.finished(), refused_closes=refused_closes
        )
        return self.shown_token

    def complete(
        self,
        *commands: Command,
        token: WorkflowTaskToken | ContinuationToken | None = None,
        nonce: str = "",
        worker: Worker = WORKER,
        eager: EagerActivities | None = None,
        outcomes: Sequence[LeasedOutcome] = (),
        workflow_time: datetime | None = None,
        limits: RunLimits = RUN_LIMITS,
    ) -> CompletionReply:
        if token is None:
            token = self.begin()
        request = CompleteWorkflowTask(
            token=token,
            nonce=nonce or f"nonce-{self.s.seq}",
            worker=worker,
            commands=commands,
            outcomes=tuple(outcomes),
            finished=tuple(FinishedActivity(item) for item in self.finished()),
            workflow_time=workflow_time,
            eager=eager,
            next_run=self.next_run(),
            limits=limits,
        )
        reply = self.step(request).reply
        assert isinstance(reply, CompletionReply)
        return reply

    def accept(self, *commands: Command, **fields: object) -> CompletionReply:
        reply = self.complete(*commands, **fields)  # type: ignore[arg-type]
        assert reply.outcome is CompletionOutcome.ACCEPTED, reply.message
        return reply

    def fused(self, outcomes: Sequence[LeasedOutcome], *commands: Command, **fields: object) -> CompletionReply:
        values: dict[str, object] = {"workflow_time": max(self.now, self.s.last_event_time), "eager": EAGER}
        values |= fields
        return self.complete(*commands, token=self.continuation(), outcomes=outcomes, **values)  # type: ignore[arg-type]

    def continuation(self) -> ContinuationToken:
        assert self.s.completion is not None
        return ContinuationToken(self.s.namespace, self.s.workflow_id, self.s.run_id, self.s.completion.seq)

    def fail_task(
        self,
        token: WorkflowTaskToken | ContinuationToken | None = None,
        outcomes: Sequence[LeasedOutcome] = (),
    ) -> CompletionReply:
        request = FailWorkflowTask(
            token=token if token is not None else self.begin(),
            nonce=f"nonce-{self.s.seq}",
            worker=WORKER,
            cause=WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
            failure=Failure(message="bug"),
            outcomes=tuple(outcomes),
            finished=tuple(FinishedActivity(item) for item in self.finished()),
        )
        reply = self.step(request).reply
        assert isinstance(reply, CompletionReply)
        return reply

    def outcomes(self, *outcomes: LeasedOutcome) -> Transition:
        return self.step(RecordLeasedOutcomes(run_id=self.s.run_id, outcomes=outcomes))

    def end_leases(self, *scheduled_event_ids: int) -> Transition:
        return self.step(EndLeases(run_id=self.s.run_id, scheduled_event_ids=scheduled_event_ids, reason="killed"))

    def wake_up(self) -> Transition:
        finished = tuple(FinishedActivity(item) for item in self.finished())
        return self.step(RecordFinishedActivities(run_id=self.s.run_id, finished=finished))

    def fire(self) -> Transition:
        """As the shell does it: first the items' own timeouts, then the log's."""
        self.armed = [row for row in self.armed if row > self.now]
        self._fired = max(self._fired, self.now)
        for item in activity_attempts.overdue(self.s, self.items, self.now):
            self.put(item)
        pending = [self.items[key] for key in self.s.activities if key in self.items]
        return self.step(FireDeadline(items=tuple(pending), next_run=self.next_run()))

    def next_run(self) -> NextRun:
        """As the shell brings it."""
        first = self.events[0].attributes if self.events else None
        started = first if isinstance(first, WorkflowExecutionStarted) and chain.repeats(self.s) else None
        return NextRun(run_id=f"run-{len(self.ended) + 2}", started=started)

    # --- activity items ---

    def put(self, item: ActivityItem) -> None:
        before = self.items.get(item.scheduled_event_id)
        assert item.version == (before.version if before is not None else 0) + 1
        arm = activity_item.arm_time(item)
        if arm is not None:
            self.armed.append(arm)
        self.items[item.scheduled_event_id] = item

    def take(self, scheduled_event_id: int, attempt: int = 1) -> ActivityItem:
        before = self.items.get(scheduled_event_id)
        pending = self.s.activities[scheduled_event_id]
        item = activity_attempts.start(
            self.s, pending, before, attempt=attempt, identity="worker-2", worker_key="k2", now=self.now
        )
        self.put(item)
        return item

    def finish(self, scheduled_event_id: int, text: str = "ok") -> ActivityItem:
        item = self.items[scheduled_event_id]
        self.put(activity_attempts.complete(item, item.attempt, payload(text), self.now))
        return self.items[scheduled_event_id]


def leased(**fields: object) -> Run:
    """A run whose activity, event 5, is leased."""
    run = Run()
    run.accept(activity("1", **fields), eager=EAGER)
    return run


def done(scheduled_event_id: int, text: str = "ok", attempt: int = 1) -> LeasedOutcome:
    return LeasedOutcome(scheduled_event_id=scheduled_event_id, attempt=attempt, result=payload(text))


def failed(scheduled_event_id: int, failure: Failure | None = None, **fields: object) -> LeasedOutcome:
    return LeasedOutcome(
        scheduled_event_id=scheduled_event_id,
        attempt=1,
        failure=failure if failure is not None else declined(),
        **fields,  # type: ignore[arg-type]
    )
