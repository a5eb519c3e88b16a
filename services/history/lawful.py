"""The rules of a history (docs/architecture/history.md), checked event by event: what an import takes in obeys them.

The simulation checks by the same rules what the engine writes.
"""

from datetime import timedelta

from stepwell.api import events as e
from stepwell.api.events import CLOSE_EVENTS, EventAttributes, HistoryEvent

from .lawful_messages import ANSWERS, OtherWorkflowRules, UpdateRules
from .violations import violation

_TASK_CLOSES = (e.WorkflowTaskCompleted, e.WorkflowTaskFailed, e.WorkflowTaskTimedOut)
_ACTIVITY_ENDS = (
    e.ActivityTaskCompleted,
    e.ActivityTaskFailed,
    e.ActivityTaskTimedOut,
    e.ActivityTaskCanceled,
)
_NOTED = (e.WorkflowExecutionOptionsUpdated, e.WorkflowExecutionPaused, e.WorkflowExecutionUnpaused)
"""Wake nobody, and may stand anywhere that the engine numbers something."""

_FROM_COMMANDS = (
    e.WorkflowExecutionCompleted,
    e.WorkflowExecutionFailed,
    e.WorkflowExecutionCanceled,
    e.ActivityTaskScheduled,
    e.ActivityTaskCancelRequested,
    e.TimerStarted,
    e.TimerCanceled,
    e.MarkerRecorded,
    e.WorkflowExecutionContinuedAsNew,
    e.StartChildWorkflowExecutionInitiated,
    e.SignalExternalWorkflowExecutionInitiated,
    e.RequestCancelExternalWorkflowExecutionInitiated,
    e.UpsertWorkflowSearchAttributes,
    e.WorkflowPropertiesModified,
    e.WorkflowExecutionUpdateAccepted,
    e.WorkflowExecutionUpdateCompleted,
)
WAKES = (
    e.WorkflowExecutionStarted,
    e.WorkflowExecutionSignaled,
    e.WorkflowExecutionCancelRequested,
    e.TimerFired,
    e.WorkflowExecutionUpdateAdmitted,
    *_ACTIVITY_ENDS,
    *ANSWERS,
)
"""What workflow code is to see, so that a workflow task follows."""

_CLOCK_GRAIN = timedelta(milliseconds=1)


class HistoryRules:
    """Feed it one run's events in order; raises :class:`Violation` at the first unlawful one."""

    def __init__(self) -> None:
        self.closed = False
        self._previous: HistoryEvent | None = None
        self._task_scheduled = 0
        self._task_started = 0
        self._task_attempt = 1
        self._commands_of = 0
        self._wake_unseen = 0
        self._activities: dict[int, e.ActivityTaskScheduled] = {}
        self._ended: set[int] = set()
        self._pending_ids: set[str] = set()
        self._cancel_requested: dict[int, int] = {}
        self._timers: dict[str, HistoryEvent] = {}
        self._others = OtherWorkflowRules()
        self._updates = UpdateRules()
        self._opening = True
        """Its first commit: what is in there came with the start."""
        self._backoff: e.WorkflowExecutionStarted | None = None
        """The start, while the first workflow task waits for its time."""

    def add(self, event: HistoryEvent) -> None:
        previous, body = self._previous, event.attributes
        last_id = previous.event_id if previous is not None else 0
        self._demand(event.event_id == last_id + 1, event, f"comes after event {last_id}")
        self._demand(not self.closed, event, "comes after the close")
        self._demand((last_id == 0) == isinstance(body, e.WorkflowExecutionStarted), event, "is misplaced")
        if previous is not None:
            self._demand(event.event_time >= previous.event_time, event, "is earlier than the event before it")
        self._neighbours(event, previous)
        self._workflow_task(event)
        self._activity(event)
        self._timer(event)
        self._others.add(event)
        self._updates.add(event)
        self._waits_for_first_task(body)
        if isinstance(body, WAKES) and self._backoff is None:
            self._wake_unseen = event.event_id
        self.closed = isinstance(body, CLOSE_EVENTS)
        self._previous = event

    def _waits_for_first_task(self, body: EventAttributes) -> None:
        """Whatever comes in behind the start ends a start delay; a backoff, of a chain's next run or a cron, only a
        cancel request."""
        waiting = self._backoff
        if isinstance(body, e.WorkflowExecutionStarted):
            self._backoff = body if body.first_workflow_task_backoff else None
        elif isinstance(body, _NOTED):
            return
        elif waiting is not None and (
            isinstance(body, e.WorkflowTaskScheduled | e.WorkflowExecutionCancelRequested)
            or not (waiting.initiator or waiting.cron_schedule or self._opening)
        ):
            self._backoff = None

    def end_of_commit(self, outstanding: bool) -> None:
        """What must hold whenever a reader can see the history. ``outstanding``: the state has a workflow task, which
        may be a transient one that the history does not show."""
        previous = self._previous
        if previous is None:
            return
        self._opening = False
        self._demand(not self._task_started, previous, "leaves a started workflow task open (rule 4)")
        self._demand(
            not isinstance(previous.attributes, e.ActivityTaskStarted), previous, "is shown before its end (rule 8)"
        )
        if not self.closed and self._wake_unseen:
            self._demand(outstanding, previous, f"no workflow task follows event {self._wake_unseen} (rule 3)")
        if self._task_scheduled and not self.closed:
            self._demand(outstanding, previous, "shows a workflow task that the state has forgotten (rule 1)")

    def _neighbours(self, event: HistoryEvent, previous: HistoryEvent | None) -> None:
        body = event.attributes
        before = previous.attributes if previous is not None else None
        if isinstance(before, e.WorkflowTaskStarted):
            self._demand(isinstance(body, _TASK_CLOSES), event, "stands between Started and its close (rule 4)")
        if isinstance(before, e.ActivityTaskStarted):
            own_end = isinstance(body, _ACTIVITY_ENDS) and body.scheduled_event_id == before.scheduled_event_id
            self._demand(own_end, event, "stands between ActivityTaskStarted and its end (rule 8)")
        if isinstance(body, _FROM_COMMANDS):
            self._demand(self._commands_of > 0, event, "is not behind a WorkflowTaskCompleted (rule 2)")
            named = getattr(
                body, "workflow_task_completed_event_id", self._commands_of
            )  # the field's updates name none
            self._demand(named == self._commands_of, event, "names another workflow task")
            after_options = isinstance(before, _NOTED)
            self._demand(not after_options or isinstance(body, CLOSE_EVENTS), event, "stands behind other options")
        elif isinstance(body, e.WorkflowTaskCompleted):
            self._commands_of = event.event_id
        elif not isinstance(body, _NOTED):  # may stand before the run's own close
            self._commands_of = 0

    def _workflow_task(self, event: HistoryEvent) -> None:
        body = event.attributes
        if isinstance(body, e.WorkflowTaskScheduled):
            self._demand(not self._task_scheduled, event, "makes a second pending workflow task (rule 1)")
            self._task_scheduled, self._task_attempt = event.event_id, body.attempt
        elif isinstance(body, e.WorkflowTaskStarted):
            self._demand(body.scheduled_event_id == self._task_scheduled != 0, event, "starts no scheduled task")
            self._task_started = event.event_id
            self._wake_unseen = 0
        elif isinstance(body, _TASK_CLOSES):
            self._demand(body.scheduled_event_id == self._task_scheduled != 0, event, "closes no scheduled task")
            self._demand(body.started_event_id == self._task_started, event, "closes a task that was not started")
            if not isinstance(body, e.WorkflowTaskCompleted):
                self._wake_unseen = event.event_id
            self._task_scheduled = self._task_started = 0

    def _activity(self, event: HistoryEvent) -> None:
        body = event.attributes
        if isinstance(body, e.ActivityTaskScheduled):
            known = body.activity_id in self._pending_ids
            self._demand(not known, event, f"reuses pending activity id {body.activity_id!r}")
            self._pending_ids.add(body.activity_id)
            self._activities[event.event_id] = body
        elif isinstance(body, e.ActivityTaskCancelRequested):
            pending = body.scheduled_event_id in self._activities and body.scheduled_event_id not in self._ended
            self._demand(pending, event, "asks to cancel an activity that is not pending")
            self._demand(body.scheduled_event_id not in self._cancel_requested, event, "asks for cancellation twice")
            self._cancel_requested[body.scheduled_event_id] = event.event_id
        elif isinstance(body, e.ActivityTaskStarted):
            self._demand(body.scheduled_event_id in self._activities, event, "starts an activity never scheduled")
        elif isinstance(body, _ACTIVITY_ENDS):
            self._activity_end(event, body)

    def _activity_end(
        self,
        event: HistoryEvent,
        body: e.ActivityTaskCompleted | e.ActivityTaskFailed | e.ActivityTaskTimedOut | e.ActivityTaskCanceled,
    ) -> None:
        key = body.scheduled_event_id
        self._demand(key in self._activities, event, "ends an activity never scheduled")
        self._demand(key not in self._ended, event, f"ends activity {key} a second time")
        self._ended.add(key)
        self._pending_ids.discard(self._activities[key].activity_id)
        before = self._previous.attributes if self._previous is not None else None
        started_before = isinstance(before, e.ActivityTaskStarted)
        expected = event.event_id - 1 if started_before else 0
        self._demand(body.started_event_id == expected, event, f"should have started_event_id {expected} (rule 8)")
        may_lack_start = isinstance(body, e.ActivityTaskTimedOut | e.ActivityTaskCanceled)
        self._demand(started_before or may_lack_start, event, "has no ActivityTaskStarted before it (rule 8)")
        if isinstance(body, e.ActivityTaskCanceled):
            self._demand(key in self._cancel_requested, event, "was canceled without a request")

    def _timer(self, event: HistoryEvent) -> None:
        body = event.attributes
        if isinstance(body, e.TimerStarted):
            self._demand(body.timer_id not in self._timers, event, f"reuses pending timer id {body.timer_id!r}")
            self._timers[body.timer_id] = event
        elif isinstance(body, e.TimerFired | e.TimerCanceled):
            started = self._timers.pop(body.timer_id, None)
            if started is None or not isinstance(started.attributes, e.TimerStarted):
                raise violation(event, "ends a timer that is not pending")
            self._demand(body.started_event_id == started.event_id, event, "names another TimerStarted")
            if isinstance(body, e.TimerFired):
                due = started.event_time + started.attributes.start_to_fire_timeout
                self._demand(event.event_time >= due - _CLOCK_GRAIN, event, f"fired before its time {due}")

    def _demand(self, holds: bool, event: HistoryEvent, what: str) -> None:
        if not holds:
            raise violation(event, what)
