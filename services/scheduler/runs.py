"""From an action that waits to a run: its ids, and what becomes of it (LC-31, LC-32, LC-37). Pure."""

from datetime import UTC, datetime
from hashlib import blake2b

import msgspec
from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ScheduleOverlapPolicy, WorkflowExecutionStatus
from stepwell.api.payloads import size_of
from stepwell.api.schedules import NewWorkflowExecutionInfo, ScheduleActionResult, ScheduleState

from ..history import retry
from .requests import Outcome, RunEnd
from .state import KEPT_ENDS, MAX_KEPT_RESULT_BYTES, Origin, Run, ScheduleRecord, Waiting, overlap_of

_replace = msgspec.structs.replace
_FAILED = (WorkflowExecutionStatus.FAILED, WorkflowExecutionStatus.TIMED_OUT)


def action_of(record: ScheduleRecord) -> NewWorkflowExecutionInfo:
    action = record.schedule.action.start_workflow
    if action is None:
        raise TypeError(f"schedule {record.schedule_id!r} has no action")
    return action


def is_exhausted(record: ScheduleRecord) -> bool:
    """No actions are left, but for orders (LC-32)."""
    state = record.schedule.state
    return state.limited_actions and state.remaining_actions <= 0


def acts_by_time(record: ScheduleRecord) -> bool:
    return not record.schedule.state.paused and not is_exhausted(record)


def request_id_of(record: ScheduleRecord, waiting: Waiting) -> str:
    """The same whenever this action is tried."""
    what = f"{waiting.origin.value}{waiting.order or ''}"
    return f"schedule:{record.incarnation}:{what}:{waiting.nominal.isoformat()}"


def new_run(record: ScheduleRecord, waiting: Waiting, *, counts: bool) -> Run:
    workflow_id = action_of(record).workflow_id
    if not record.schedule.policies.keep_original_workflow_id:
        workflow_id = f"{workflow_id}-{suffix(waiting.nominal)}"
    return Run(workflow_id=workflow_id, run_id=_run_id(request_id_of(record, waiting)), waiting=waiting, counts=counts)


def mark_timed(record: ScheduleRecord, before: ScheduleRecord) -> None:
    """The new ones whose lateness is ours: nobody ordered them, and they waited neither for the end of another one nor
    for the schedule to be unpaused. ``before``: as the step found it."""
    if record.runs == before.runs or before.schedule.state.paused:
        return
    known = {run.run_id for run in before.runs}
    timed = [run.run_id not in known and _is_timed(before, run) for run in record.runs]
    record.runs = tuple(
        [_replace(run, timed=True) if is_timed else run for run, is_timed in zip(record.runs, timed, strict=True)]
    )


def _is_timed(before: ScheduleRecord, run: Run) -> bool:
    waiting, until = run.waiting, before.resume_until
    if waiting.origin is not Origin.TIME or (until is not None and waiting.nominal <= until):
        return False
    return waiting.late or waiting not in before.buffer


def _run_id(request_id: str) -> str:
    """A UUID of version 4, as others are."""
    drawn = blake2b(request_id.encode(errors="replace"), digest_size=16).hexdigest()
    variant = "89ab"[int(drawn[16], 16) & 3]
    return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-{variant}{drawn[17:20]}-{drawn[20:]}"


def suffix(nominal: datetime) -> str:
    """Of the ids of runs: ``2026-11-30T12:00:00Z``, with milliseconds where there are some."""
    spec = "milliseconds" if nominal.microsecond else "seconds"
    return nominal.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def attempted(record: ScheduleRecord, run_id: str, outcome: Outcome, now: datetime) -> None:
    """What became of a start; told again it changes nothing."""
    run = next((run for run in record.runs if run.run_id == run_id), None)
    if run is None or run.started:
        return
    match outcome:
        case Outcome.STARTED:
            _started(record, run, now)
        case Outcome.TAKEN:
            record.overlap_skipped += 1
            _drop(record, run, gives_back=True)
        case Outcome.REFUSED:
            record.start_refused += 1
            _drop(record, run, gives_back=False)


def _started(record: ScheduleRecord, run: Run, now: datetime) -> None:
    record.action_count += 1
    record.last_activity = now
    result = ScheduleActionResult(
        schedule_time=run.waiting.nominal,
        actual_time=now,
        start_workflow_result=WorkflowExecution(workflow_id=run.workflow_id, run_id=run.run_id),
        start_workflow_status=WorkflowExecutionStatus.RUNNING,
    )
    record.recent_actions = (*record.recent_actions, result)[-limits.SCHEDULE_RECENT_ACTIONS :]
    _put(record, run, _replace(run, started=True) if run.counts else None)


def _drop(record: ScheduleRecord, run: Run, *, gives_back: bool) -> None:
    state = record.schedule.state
    if gives_back and run.waiting.origin is Origin.TIME and state.limited_actions:
        change_state(record, _replace(state, remaining_actions=state.remaining_actions + 1))
    _put(record, run, None)


def stop_asked(record: ScheduleRecord, run_id: str) -> None:
    for run in record.runs:
        if run.run_id == run_id:
            _put(record, run, _replace(run, stop_asked=True))


def _put(record: ScheduleRecord, run: Run, changed: Run | None) -> None:
    runs = [changed if one is run else one for one in record.runs]
    record.runs = tuple([one for one in runs if one is not None])


def hear(record: ScheduleRecord, end: RunEnd, now: datetime) -> None:
    """A chain of runs has ended. Heard again it changes nothing."""
    run = next((run for run in record.runs if run.run_id == end.run_id), None)
    if end.run_id in record.heard or (run is None and not record.schedule.policies.pause_on_failure):
        return
    if run is not None:
        if not run.started:
            _started(record, run, now)
        record.runs = tuple([one for one in record.runs if one.run_id != end.run_id])
        record.last_activity = now
    record.heard = (*record.heard, end.run_id)[-KEPT_ENDS:]
    if end.status is None:
        return
    record.recent_actions = tuple([_with_status(entry, end) for entry in record.recent_actions])
    if run is not None and overlap_of(record, run.waiting) is not ScheduleOverlapPolicy.ALLOW_ALL:
        _keep_result(record, run, end)
    if record.schedule.policies.pause_on_failure and end.status in _FAILED:
        _pause_on_failure(record, run.workflow_id if run is not None else "", end)


def _with_status(entry: ScheduleActionResult, end: RunEnd) -> ScheduleActionResult:
    execution = entry.start_workflow_result
    if execution is None or execution.run_id != end.run_id:
        return entry
    return _replace(entry, start_workflow_status=end.status)


def _keep_result(record: ScheduleRecord, run: Run, end: RunEnd) -> None:
    """As cron does: a failure leaves the last result for the next run, a result takes the failure away."""
    if end.status is WorkflowExecutionStatus.COMPLETED:
        large = size_of(end.result) > MAX_KEPT_RESULT_BYTES
        record.last_result = () if large else end.result
        record.last_result_of = WorkflowExecution(workflow_id=run.workflow_id, run_id=end.run_id) if large else None
        record.last_failure = None
    elif end.status in _FAILED:
        record.last_failure = None if end.failure is None else retry.kept(end.failure)


def _pause_on_failure(record: ScheduleRecord, workflow_id: str, end: RunEnd) -> None:
    state = record.schedule.state
    if state.paused:
        return
    how = "timeout" if end.status is WorkflowExecutionStatus.TIMED_OUT else "failure"
    said = f": {end.failure.message}" if end.failure is not None and end.failure.message else ""
    note = f"paused due to workflow {how}: {workflow_id or end.run_id}{said}"
    change_state(record, _replace(state, paused=True, note=cut(note)))


def cut(note: str) -> str:
    return note.encode(errors="replace")[: limits.MAX_NOTE_BYTES].decode(errors="ignore")


def change_state(record: ScheduleRecord, state: ScheduleState) -> None:
    record.schedule = _replace(record.schedule, state=state)
    record.revision += 1
