"""Messages that start the workflow they are for when no run is open: signal-with-start and update-with-start (MS-09,
MS-32). Start and message are one commit, and both are there before the first workflow task.

A repeat is known by the request id of its start, which is also that of its signal: it gets the run that the first call
met or made, and adds nothing, also when that run is closed by now (WC-03).
"""

from datetime import datetime

from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import ApiError, InvalidArgument, NotFound, WorkflowExecutionAlreadyStarted
from stepwell.api.requests import StartWorkflowRequest
from stepwell.api.updates import UpdateRequest

from ..builder import TransitionBuilder, unchanged
from ..requests import Signal, Signals, SignalWithStart, Start, UpdateWithStart
from ..state import ExecutionState
from ..transition import SignalsReply, StartReply, Transition, UpdateReply
from . import inbox, options, signal, start, succession, update
from .run_checks import check_open, check_run

Begun = tuple[TransitionBuilder | None, StartReply | None]


def signals(state: ExecutionState | None, request: Signals, now: datetime) -> Transition:
    """Each signal as if it came alone; one that is refused does not hold up the others."""
    draft = TransitionBuilder(state, now) if state is not None and state.close_time is None else None
    refusals: list[ApiError | None] = []
    starts: list[StartReply | None] = []
    for asked in request.signals:
        started = None
        try:
            if isinstance(asked, SignalWithStart):
                draft, started = _signal_with_start(draft, state, asked, now)
            else:
                _signal(draft, state, asked)
            refusals.append(None)
        except ApiError as refusal:
            refusals.append(refusal)
        starts.append(started)
    reply = SignalsReply(refusals=tuple(refusals), starts=tuple(starts))
    if draft is not None and draft.dirty:
        return draft.finish(reply)
    if state is None:
        raise next(refusal for refusal in refusals if refusal is not None)
    return unchanged(state, reply)


def _signal(draft: TransitionBuilder | None, state: ExecutionState | None, asked: Signal) -> None:
    head = state if draft is None else draft.state
    if head is None:
        raise NotFound("there is no such workflow; start it first, or check the workflow_id and namespace")
    if signal.is_repeat(head, asked):
        return
    check_run(head, asked.run_id, asked.first_run_id)
    check_open(head)
    assert draft is not None
    signal.receive(draft, asked)
    inbox.settle(draft)


def _signal_with_start(
    draft: TransitionBuilder | None, state: ExecutionState | None, asked: SignalWithStart, now: datetime
) -> Begun:
    start.check(asked.start.start)
    head = state if draft is None else draft.state
    if head is not None:
        known = start.before(head, asked.start)
        if known is not None:
            return draft, known
        if signal.is_repeat(head, asked.signal):
            return draft, _taken_by(head, asked)
        if head.close_time is None and not _replaces(asked.start):
            assert draft is not None
            if options.attaches(asked.start):
                options.check_room(draft.state, asked.start)
            signal.receive(draft, asked.signal)
            if options.attaches(asked.start):
                options.attach(draft, asked.start)
            inbox.settle(draft)
            return draft, _there(head)
    if draft is not None and draft.dirty:
        raise ValueError("a start that replaces the open run is a commit of its own")
    draft = _begun(state, asked.start, now)  # of the state: a draft has its seq already
    signal.receive(draft, asked.signal)
    succession.begin(draft)
    return draft, _made(asked.start)


def update_with_start(state: ExecutionState | None, request: UpdateWithStart, now: datetime) -> Transition:
    """The reply names the run that has the update."""
    update_id = request.update.request.meta.update_id
    start.check(request.start.start)
    _check_at_once(request.start.start)
    if state is not None:
        known = start.before(state, request.start)
        if known is not None and known.run_id != state.run_id:
            return unchanged(state, UpdateReply(run_id=known.run_id, start=known))
        ended = update.ended(state, update_id)
        ended_seq = request.update.ended_seq if ended is None else ended.seq
        if known is None and ended is not None and update.is_cut_off(ended):
            ended_seq = 0  # it has no outcome that another start could ask for (MS-32)
        if ended_seq or update_id in state.updates:
            reply = UpdateReply(run_id=state.run_id, ended_seq=ended_seq, start=known or _there(state))
            return _with_attached(state, request.start, reply, now) if known is None else unchanged(state, reply)
        if state.close_time is None and not _replaces(request.start):
            _check_conflict(state, request.start, known)
            draft = TransitionBuilder(state, now)
            update.admit(draft, request.update.request)
            if known is None and options.attaches(request.start):
                options.attach(draft, request.start)
                inbox.settle(draft)
            return draft.finish(UpdateReply(run_id=state.run_id, start=known or _there(state)))
        if known is not None:
            check_open(state)
    draft = _begun(state, request.start, now)
    _put(draft, request.update.request)
    succession.begin(draft)
    return draft.finish(UpdateReply(run_id=draft.state.run_id, start=_made(request.start)))


def _with_attached(state: ExecutionState, request: Start, reply: UpdateReply, now: datetime) -> Transition:
    """The answer to an update that the run has already, when it was asked for by another start than before."""
    if state.close_time is not None or not options.attaches(request):
        return unchanged(state, reply)
    draft = TransitionBuilder(state, now)
    options.attach(draft, request)
    inbox.settle(draft)
    return draft.finish(reply)


def _check_at_once(asked: StartWorkflowRequest) -> None:
    """Its caller waits for workflow code, which therefore must not be held back (MS-32)."""
    for field in ("cron_schedule", "workflow_start_delay"):
        if getattr(asked, field):
            raise InvalidArgument(
                f"{field} cannot go with an update, which is for a workflow that begins at once; leave it out, or "
                "start the workflow first and update it then",
                field=field,
            )


def _put(draft: TransitionBuilder, asked: UpdateRequest) -> None:
    """Of a run that has just begun: its first workflow task shows the update."""
    update.refuse(draft.state, asked)
    update.put_new(draft, asked)


def _check_conflict(head: ExecutionState, request: Start, known: StartReply | None) -> None:
    asked = request.start
    if known is None and asked.workflow_id_conflict_policy is WorkflowIDConflictPolicy.FAIL:
        raise WorkflowExecutionAlreadyStarted(
            f"workflow {asked.workflow_id!r} is running as run {head.run_id}. Use workflow_id_conflict_policy "
            "USE_EXISTING to update that run, or another workflow_id.",
            run_id=head.run_id,
        )


def known(head: ExecutionState, asked: Signal | SignalWithStart) -> tuple[bool, StartReply | None]:
    """Whether it was done before, and in which run if it is one that starts."""
    if isinstance(asked, Signal):
        return signal.is_repeat(head, asked), None
    started = start.before(head, asked.start)
    if started is None and signal.is_repeat(head, asked.signal):
        started = _taken_by(head, asked)
    return started is not None, started


def _begun(head: ExecutionState | None, request: Start, now: datetime) -> TransitionBuilder:
    if head is None:
        return start.opening(None, request, now)
    if head.close_time is None:
        return start.replacing(head, request, now)
    start.check_reuse(head, request)
    return start.opening(head, request, now)


def _replaces(request: Start) -> bool:
    return request.start.workflow_id_conflict_policy is WorkflowIDConflictPolicy.TERMINATE_EXISTING


def _there(head: ExecutionState) -> StartReply:
    return StartReply(run_id=head.run_id, first_run_id=head.first_run_id, started=False)


def _taken_by(head: ExecutionState, asked: SignalWithStart) -> StartReply:
    run_id, first_run_id = asked.taken_by or (head.run_id, head.first_run_id)
    return StartReply(run_id=run_id, first_run_id=first_run_id, started=False)


def _made(request: Start) -> StartReply:
    return StartReply(run_id=request.run_id, first_run_id=request.run_id, started=True)
