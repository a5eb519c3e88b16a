"""Random lives of a run: whatever is asked of it in whatever order, the core's promises hold.

``Run`` checks after every step: rules 1 to 8 of the history protocol, ``rebuild(history) == state`` less what is
transient, the history only grows, and the armed deadline is never late.
"""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from stepwell.api import commands as c
from stepwell.api.codec import encode_json
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import CompletionOutcome, WorkflowIDConflictPolicy
from stepwell.api.errors import ApiError, NotFound
from stepwell.api.failures import Failure
from stepwell.api.requests import OnConflictOptions, StartWorkflowRequest

from stepwell_server.history import activity_attempts
from stepwell_server.history.activity_item import ItemState
from stepwell_server.history.apply import durable_part, rebuild
from stepwell_server.history.deadlines import LONGEST
from stepwell_server.history.machines import workflow_task
from stepwell_server.history.requests import LeasedOutcome, Request, RequestCancel, Signal, Start
from stepwell_server.history.task_tokens import WorkflowTaskToken
from tests.support.history_run import EAGER, Run, activity, declined, done, payload, seconds

SHORT = st.sampled_from([0.001, 0.5, 1, 3, 10, 31])
TIMEOUT = st.sampled_from([1, 5, 40, 4000])
POLICY = st.sampled_from(
    [
        None,
        RetryPolicy(maximum_attempts=1),
        RetryPolicy(maximum_attempts=3, initial_interval=seconds(0.5)),
        RetryPolicy(initial_interval=seconds(2), non_retryable_error_types=("Declined",)),
    ]
)


class HistoryMachine(RuleBasedStateMachine):
    """The engine's callers: clients, workers that keep tokens too long, a clock, a shell that loses wake-ups."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run(begun=False)
        self.tokens: list[WorkflowTaskToken] = []
        self.shown: dict[int, tuple[WorkflowTaskToken, list[bytes]]] = {}
        self.ids = 0

    def next_id(self) -> str:
        self.ids += 1
        return str(self.ids)

    @initialize(run_timeout=st.sampled_from([None, 30, 3000]), execution_timeout=st.sampled_from([None, 50]))
    def start(self, run_timeout: int | None, execution_timeout: int | None) -> None:
        self.run.start(
            workflow_run_timeout=None if run_timeout is None else seconds(run_timeout),
            workflow_execution_timeout=None if execution_timeout is None else seconds(execution_timeout),
            request_id="start-1",
        )

    @property
    def open(self) -> bool:
        return self.run.s.close_time is None

    def twice(self, request: Request) -> None:
        """Any request twice is as once, where that is promised: by request id, or by what it refers to."""
        self.run.step(request)
        after = encode_json(durable_part(self.run.s))
        history = len(self.run.events)
        buffered = self.run.s.buffered
        assert not self.run.step(request).changed
        assert encode_json(durable_part(self.run.s)) == after
        assert len(self.run.events) == history and self.run.s.buffered == buffered

    # --- clients and the clock ---

    @rule(count=SHORT)
    def time_passes(self, count: float) -> None:
        self.run.wait(count)

    @rule(count=SHORT)
    def clock_goes_back(self, count: float) -> None:
        self.run.wait(-count)

    @precondition(lambda self: self.open)
    @rule(repeated=st.booleans())
    def signal(self, repeated: bool) -> None:
        request = Signal(run_id="", signal_name="ship", input=payload(), request_id=self.next_id())
        try:
            self.twice(request) if repeated else self.run.step(request)
        except ApiError as refused:
            if not refused.retryable:  # only that the run is about to close
                raise

    @precondition(lambda self: self.open)
    @rule()
    def many_signals(self) -> None:
        try:
            for _ in range(60):
                self.run.signal()
        except ApiError as refused:
            if not refused.retryable:
                raise

    @rule()
    def cancel(self) -> None:
        try:
            self.twice(RequestCancel(run_id="", request_id=self.next_id()))
        except ApiError as refused:
            if not refused.retryable:
                raise

    @rule()
    def start_again(self) -> None:
        reply = self.run.start("run-again", request_id="start-1").reply
        assert reply is not None and getattr(reply, "run_id") == "run-1"  # noqa: B009
        assert not self.run.last.changed

    @precondition(lambda self: self.open)
    @rule()
    def start_beside(self) -> None:
        """One that the open run remembers (LC-04)."""
        asked = StartWorkflowRequest(
            workflow_id="order-1",
            workflow_type="fulfil",
            task_queue="orders",
            request_id=f"beside {self.next_id()}",
            workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            on_conflict_options=OnConflictOptions(attach_request_id=True),
        )
        had_task = self.run.s.workflow_task is not None
        self.twice(Start(run_id="run-none", start=asked))
        assert (self.run.s.workflow_task is not None) == had_task

    @precondition(lambda self: self.open)
    @rule(dice=st.integers(0, 19))
    def terminate(self, dice: int) -> None:
        if dice == 19:
            self.run.terminate()

    @rule(early=st.booleans())
    def fire(self, early: bool) -> None:
        if not early and self.run.armed:
            self.run.now = max(self.run.now, min(self.run.armed))
        was_open = self.open
        transition = self.run.fire()
        assert transition.changed == was_open
        if self.open:
            assert min(self.run.armed) > self.run.now

    # --- workflow workers ---

    @precondition(lambda self: workflow_task.may_begin(self.run.s, self.run.now))
    @rule(refused=st.integers(0, 1))
    def take_workflow_task(self, refused: int) -> None:
        token = self.run.begin(refused_closes=refused)
        self.tokens.append(token)
        self.shown[len(self.tokens) - 1] = token, [encode_json(event) for event in self.run.shown]

    def commands(self, data: st.DataObject) -> list[c.Command]:
        result: list[c.Command] = []
        state = self.run.s
        for kind in data.draw(st.lists(st.sampled_from("aaatxyb"), max_size=4), label="commands"):
            if kind == "a":
                result.append(self._activity(data))
            elif kind == "t":
                after = timedelta(seconds=data.draw(SHORT))
                result.append(c.StartTimer(timer_id=self.next_id(), start_to_fire_timeout=after))
            elif kind == "x" and state.timers:
                result.append(c.CancelTimer(timer_id=data.draw(st.sampled_from(sorted(state.timers)))))
            elif kind == "y" and state.activities:
                chosen = data.draw(st.sampled_from(sorted(state.activities)))
                result.append(c.RequestCancelActivityTask(scheduled_event_id=chosen))
            elif kind == "b":
                result.append(c.RecordMarker(marker_name="m"))
        if data.draw(st.integers(0, 9), label="closes") == 0:
            result.append(data.draw(st.sampled_from([c.CompleteWorkflowExecution(), c.CancelWorkflowExecution()])))
        return result

    def _activity(self, data: st.DataObject) -> c.Command:
        return activity(
            self.next_id(),
            start_to_close_timeout=seconds(data.draw(TIMEOUT)),
            schedule_to_close_timeout=data.draw(st.sampled_from([None, seconds(7), seconds(100)])),
            heartbeat_timeout=data.draw(st.sampled_from([None, None, seconds(2)])),
            retry_policy=data.draw(POLICY),
        )

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.tokens) - 1))
        token, shown = self.shown[position]
        before = len(self.run.events)
        nonce = self.next_id()
        commands = self.commands(data)
        reply = self.run.complete(*commands, token=token, nonce=nonce, eager=EAGER)
        if reply.outcome in (CompletionOutcome.ACCEPTED, CompletionOutcome.FAILED) and len(self.run.events) > before:
            # what begin() showed is what the completion recorded, byte for byte
            recorded = [encode_json(event) for event in self.run.events[before : before + len(shown)]]
            assert recorded == shown
        if reply.outcome is CompletionOutcome.ACCEPTED:
            behind = self.run.events[reply.started_event_id + 1 + len(commands) :]
            assert all(event.event_type == "WorkflowExecutionOptionsUpdated" for event in behind) or not reply.fusible
            assert reply.next_event_id == len(self.run.events) + 1
            again = self.run.complete(*commands, token=token, nonce=nonce, eager=EAGER)
            assert again == reply and not self.run.last.changed
            if not commands:
                other = self.run.complete(token=token, nonce="other")
                assert other.outcome is CompletionOutcome.STALE

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def fail_workflow_task(self, data: st.DataObject) -> None:
        token, _ = self.shown[data.draw(st.integers(0, len(self.tokens) - 1))]
        before, attempt = len(self.run.events), token.attempt
        task = self.run.s.workflow_task
        reply = self.run.fail_task(token)
        assert reply.outcome in (CompletionOutcome.FAILED, CompletionOutcome.STALE)
        if reply.outcome is CompletionOutcome.FAILED and task is not None and task.scheduled_event_id == 0:
            assert len(self.run.events) == before or attempt == 1
        assert self.run.fail_task(token).outcome is CompletionOutcome.STALE
        assert not self.run.last.changed

    # --- activity workers ---

    def _leased(self, data: st.DataObject) -> int | None:
        leased = [key for key, pending in self.run.s.activities.items() if pending.lease is not None]
        return data.draw(st.sampled_from(leased)) if leased else None

    def _outcome(self, scheduled_event_id: int, data: st.DataObject) -> LeasedOutcome:
        match data.draw(st.sampled_from("dddfsc")):
            case "d":
                return done(scheduled_event_id)
            case "f":
                return LeasedOutcome(scheduled_event_id=scheduled_event_id, attempt=1, failure=declined())
            case "s":
                return LeasedOutcome(
                    scheduled_event_id=scheduled_event_id, attempt=1, failure=Failure(), worker_shutdown=True
                )
            case _:
                return LeasedOutcome(scheduled_event_id=scheduled_event_id, attempt=1, canceled=True)

    @precondition(lambda self: self.run.s.activities)
    @rule(data=st.data())
    def leased_end(self, data: st.DataObject) -> None:
        chosen = self._leased(data)
        if chosen is not None:
            outcome = self._outcome(chosen, data)
            self.run.outcomes(outcome)
            assert not self.run.outcomes(outcome).changed

    @precondition(lambda self: self.run.s.activities and self.run.s.completion is not None)
    @rule(data=st.data())
    def fused_step(self, data: st.DataObject) -> None:
        chosen = self._leased(data)
        if chosen is not None:
            valid = self.run.s.workflow_task is None and self.run.s.numbered_seq <= self.run.s.completion.seq
            outcome = self._outcome(chosen, data)
            reply = self.run.fused([outcome], *self.commands(data))
            assert valid or reply.outcome is CompletionOutcome.STALE

    @precondition(lambda self: self.run.s.activities)
    @rule(data=st.data())
    def worker_dies(self, data: st.DataObject) -> None:
        chosen = self._leased(data)
        if chosen is not None:
            self.run.end_leases(chosen)
            assert not self.run.end_leases(chosen).changed

    def _held(self, *states: ItemState | None) -> list[int]:
        held = []
        for key, pending in self.run.s.activities.items():
            item = self.run.items.get(key)
            if pending.lease is None and (item.state if item is not None else None) in states:
                held.append(key)
        return held

    @precondition(lambda self: self._held(None, ItemState.SCHEDULED))
    @rule(data=st.data())
    def take_activity(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self._held(None, ItemState.SCHEDULED)))
        item = self.run.items.get(chosen)
        attempt = item.attempt if item is not None else self.run.s.activities[chosen].attempt
        try:
            self.run.take(chosen, attempt)
        except NotFound:
            return  # not yet, or overdue
        assert self.run.items[chosen].attempt == attempt

    @precondition(lambda self: self._held(ItemState.STARTED))
    @rule(data=st.data(), end=st.sampled_from("ccfhx"), wake=st.booleans())
    def item_changes(self, data: st.DataObject, end: str, wake: bool) -> None:
        chosen = data.draw(st.sampled_from(self._held(ItemState.STARTED)))
        item = self.run.items[chosen]
        now, attempt = self.run.now, item.attempt
        match end:
            case "c":
                after = activity_attempts.complete(item, attempt, payload(), now)
                assert activity_attempts.complete(after, attempt, payload(), now) is after
            case "f":
                after = activity_attempts.fail(item, attempt, declined(), now)
                assert activity_attempts.fail(after, attempt, declined(), now) is after
            case "x":
                after = activity_attempts.cancel(item, attempt, (), now)
                assert activity_attempts.cancel(after, attempt, (), now) is after
            case _:
                after = activity_attempts.heartbeat(item, attempt, payload("half"), now)
        self.run.put(after)
        if wake:
            self.run.wake_up()
            assert not self.run.wake_up().changed

    @precondition(lambda self: self.run.s.activities)
    @rule()
    def cancels_arrive(self) -> None:
        for key, pending in self.run.s.activities.items():
            if pending.cancel_requested_event_id and pending.lease is None:
                before = self.run.items.get(key)
                item = activity_attempts.request_cancel(self.run.s, pending, before, self.run.now)
                assert activity_attempts.request_cancel(self.run.s, pending, item, self.run.now) is item
                if item is not before:
                    self.run.put(item)

    def teardown(self) -> None:
        if self.run.state is not None:
            finish_by_deadlines_alone(self.run)
            assert durable_part(rebuild(self.run.events, "default")) == durable_part(self.run.s)


def any_can_end(run: Run) -> bool:
    """Whether time alone ends an activity's attempt."""
    for key, pending in run.s.activities.items():
        item = run.items.get(key)
        waits = pending.lease is None and (item is None or item.state is ItemState.SCHEDULED)
        if not waits or pending.schedule_to_close_timeout is not None:
            return True
    return False


def finish_by_deadlines_alone(run: Run) -> None:
    """No execution wedges: with every message lost, firings alone see every pending thing to its end.

    A run with a timeout closes. Another ends up with nothing pending but activities that wait for a worker and have no
    overall deadline; those are dispatched again for ever, as its workflow task is.
    """
    for _ in range(400):
        pending = run.s.timers or run.s.workflow_task is not None or any_can_end(run)
        if run.s.close_time is not None or (run.s.run_expires is None and not pending):
            return
        assert min(run.armed) <= run.now + LONGEST
        run.now = max(run.now, min(run.armed))
        transition = run.fire()
        assert transition.changed
        if run.s.run_expires is None and run.s.workflow_task is not None:
            if workflow_task.may_begin(run.s, run.now):
                run.accept()
    pytest.fail(f"the run is still open with {len(run.s.activities)} activities and {len(run.s.timers)} timers")


HistoryMachine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestHistory = HistoryMachine.TestCase
