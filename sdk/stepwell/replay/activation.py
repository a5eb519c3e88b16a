"""A history cut into activations: what workflow code saw at once, and what it then asked for.

Theory of operation. A worker is shown the history up to a ``WorkflowTaskStarted``. Everything that came in since the
previous completed workflow task is one *activation*: its jobs (start, signals, updates, cancel request, ends of
activities, fired timers) are applied, and code runs until it waits. What it asks for are the *command events*
directly behind ``WorkflowTaskCompleted``. A workflow task that failed or timed out leaves no trace: its events belong
to the next activation, which begins with new randomness when it was a reset that ended the task. Cutting by completed
tasks alone is what makes replay see the same batches as the worker that ran them live, however they reached it (one by
one, or fused).

Inside an activation, flags come first, then signals and updates in the order in which they came, then resolutions,
then the cancel request; and only then does code run. So all handlers of a batch have run before the main function goes
on (WC-01). A cancel is raised at the wait where the main function stands, also when a result for that wait came in the
same batch (WC-08): what has ended is not asked to stop, and its handle has its result.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ..api import events as ev
from ..api.common import SdkMetadata
from ..api.enums import SuggestContinueAsNewReason
from ..api.events import EventAttributes, HistoryEvent
from ..api.updates import DeliveredUpdate, UpdateRequest

COMMAND_EVENTS = frozenset(
    {
        ev.ActivityTaskScheduled,
        ev.ActivityTaskCancelRequested,
        ev.TimerStarted,
        ev.TimerCanceled,
        ev.MarkerRecorded,
        ev.WorkflowExecutionCompleted,
        ev.WorkflowExecutionFailed,
        ev.WorkflowExecutionCanceled,
        ev.WorkflowExecutionContinuedAsNew,
        ev.StartChildWorkflowExecutionInitiated,
        ev.SignalExternalWorkflowExecutionInitiated,
        ev.RequestCancelExternalWorkflowExecutionInitiated,
        ev.UpsertWorkflowSearchAttributes,
        ev.WorkflowPropertiesModified,
        ev.WorkflowExecutionUpdateAccepted,
        ev.WorkflowExecutionUpdateCompleted,
    }
)
_IGNORED = frozenset(
    {
        ev.WorkflowTaskScheduled,
        ev.ActivityTaskStarted,
        ev.WorkflowExecutionTerminated,
        ev.WorkflowExecutionTimedOut,
        ev.WorkflowExecutionOptionsUpdated,
        ev.WorkflowExecutionPaused,
        ev.WorkflowExecutionUnpaused,
    }
)
_NOISE = (ev.WorkflowExecutionOptionsUpdated, ev.WorkflowExecutionPaused, ev.WorkflowExecutionUnpaused)
"""May stand anywhere, also between the command events and the one of them that closes the run."""


Job = EventAttributes | UpdateRequest


@dataclass(slots=True)
class Activation:
    """One workflow task as code sees it. ``completed_event_id`` is 0 for the task that is to be answered now."""

    time: datetime
    started_event_id: int
    jobs: list["Job"]
    job_event_ids: list[int]
    history_size_bytes: int = 0
    suggested: tuple[SuggestContinueAsNewReason, ...] = ()
    suggest_continue_as_new: bool = False
    completed_event_id: int = 0
    sdk_metadata: SdkMetadata | None = None
    command_events: list[HistoryEvent] = field(default_factory=list)
    new_seed: str = ""
    """The run that a reset made, when the history is that run's from here on."""


def activations(events: Sequence[HistoryEvent], after_event_id: int) -> Iterator[Activation]:
    """Cut the events behind ``after_event_id``, which is the end of what was applied already."""
    jobs: list[HistoryEvent] = []
    started: HistoryEvent | None = None
    current: Activation | None = None
    new_seed = ""
    events = [event for event in events if event.event_id > after_event_id and type(event.attributes) not in _NOISE]
    for event in events:
        attributes = event.attributes
        kind = type(attributes)
        if current is not None:
            if kind in COMMAND_EVENTS:
                current.command_events.append(event)
                continue
            yield current
            current = None
        if kind is ev.WorkflowTaskStarted:
            started = event
        elif kind in _TASK_ENDS:
            if isinstance(attributes, ev.WorkflowTaskCompleted) and started is not None:
                current, jobs = _completed(started, jobs, event.event_id, attributes), []
                current.new_seed, new_seed = new_seed, ""
            else:
                new_seed = _seed_behind(attributes) or new_seed
            started = None
        elif kind not in _IGNORED:
            jobs.append(event)
    if current is not None:
        yield current
    if started is not None:
        last = _activation(started, jobs)
        last.new_seed = new_seed
        yield last


_TASK_ENDS = frozenset({ev.WorkflowTaskCompleted, ev.WorkflowTaskFailed, ev.WorkflowTaskTimedOut})


def _seed_behind(attributes: EventAttributes) -> str:
    return attributes.new_run_id if isinstance(attributes, ev.WorkflowTaskFailed) else ""


def _completed(
    started: HistoryEvent, jobs: list[HistoryEvent], event_id: int, completed: ev.WorkflowTaskCompleted
) -> Activation:
    activation = _activation(started, jobs)
    activation.completed_event_id = event_id
    activation.sdk_metadata = completed.sdk_metadata
    return activation


def _activation(started: HistoryEvent, jobs: list[HistoryEvent]) -> Activation:
    attributes = started.attributes
    assert isinstance(attributes, ev.WorkflowTaskStarted)
    return Activation(
        started.event_time,
        started.event_id,
        [event.attributes for event in jobs],
        [event.event_id for event in jobs],
        history_size_bytes=attributes.history_size_bytes,
        suggest_continue_as_new=attributes.suggest_continue_as_new,
        suggested=attributes.suggest_continue_as_new_reasons,
    )


def put_in(activation: Activation, updates: Sequence[DeliveredUpdate]) -> None:
    """Each update becomes a job, behind the event that it came behind."""
    if not updates:
        return
    numbered: list[tuple[int, Job]] = list(zip(activation.job_event_ids, activation.jobs, strict=True))
    for update in updates:
        at = sum(event_id <= update.sequencing_event_id for event_id, _ in numbered)
        numbered.insert(at, (update.sequencing_event_id, update.request))
    activation.jobs = [job for _, job in numbered]
    activation.job_event_ids = [event_id for event_id, _ in numbered]


_ADMITTED = ev.WorkflowExecutionUpdateAdmitted


def accepted_updates(activation: Activation, carried: Mapping[str, UpdateRequest]) -> list[DeliveredUpdate]:
    """Those that a recorded workflow task has accepted. ``carried``: requests that are in events of their own, before
    this activation; others may be among its jobs."""
    own = {job.request.meta.update_id: job.request for job in activation.jobs if isinstance(job, _ADMITTED)}
    carried = {**carried, **own}
    found = []
    for event in activation.command_events:
        attributes = event.attributes
        if isinstance(attributes, ev.WorkflowExecutionUpdateAccepted):
            request = attributes.accepted_request or carried.get(attributes.protocol_instance_id)
            if request is not None:
                at = attributes.accepted_request_sequencing_event_id
                found.append(DeliveredUpdate(request=request, sequencing_event_id=at))
    return found


def in_order(jobs: list[Job], messages_first: bool) -> list[Job]:
    """Jobs as they are applied: the start, signals and updates, resolutions, the cancel request; or as recorded."""
    if not messages_first or len(jobs) < 2:
        return jobs
    return sorted(jobs, key=_rank)


def _rank(job: Job) -> int:
    return _RANKS.get(type(job), 2)


_RANKS: dict[type, int] = {
    ev.WorkflowExecutionStarted: 0,
    ev.WorkflowExecutionSignaled: 1,
    ev.WorkflowExecutionUpdateAdmitted: 1,
    UpdateRequest: 1,
    ev.WorkflowExecutionCancelRequested: 3,
}
