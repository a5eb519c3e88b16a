"""What a run asks of other executions, from the asker's side: sent again until it is answered, and owed behind a close
(design sections 7 and 9).

A question is pending in the run that asked; a close moves it to ``owed``, which the next run of the id carries on, so
that it is delivered all the same. Only its answer, or a ``Discharge``, takes it off.
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    ParentClosePolicy,
    SignalExternalWorkflowExecutionFailedCause,
)
from stepwell.api.events import (
    EventAttributes,
    ExternalWorkflowExecutionCancelRequested,
    ExternalWorkflowExecutionSignaled,
    RequestCancelExternalWorkflowExecutionFailed,
    SignalExternalWorkflowExecutionFailed,
)

from ..answers import Answer, ChildAnswer, ChildClosed, Delivery, Discharged
from ..builder import TransitionBuilder
from ..deadlines import asked_of_others, redispatch_after
from ..state import (
    Asked,
    Owed,
    OwedArchive,
    OwedCancel,
    OwedChild,
    OwedDeletion,
    OwedNotice,
    OwedSignal,
    OwedToOthers,
    ParentLink,
    PendingChild,
    PendingExternalCancel,
    PendingExternalSignal,
)
from ..tasks import (
    ApplyParentClose,
    ArchiveRuns,
    CancelExternal,
    CrossRunTask,
    DeleteRun,
    NotifyParent,
    SignalExternal,
    StartChild,
    Task,
)
from . import child, inbox, parent_close

_replace = msgspec.structs.replace
_LEFT_BY_A_CLOSE = (SignalExternal, CancelExternal, ApplyParentClose, NotifyParent)

_TASKS: dict[type, type[CrossRunTask]] = {
    PendingChild: StartChild,
    PendingExternalSignal: SignalExternal,
    PendingExternalCancel: CancelExternal,
    OwedSignal: SignalExternal,
    OwedCancel: CancelExternal,
    OwedChild: ApplyParentClose,
    OwedNotice: NotifyParent,
}


def tasks_of(tasks: Iterable[Task]) -> list[Task]:
    """The tasks that go to other executions: what is left of a run's tasks when it closes."""
    return [task for task in tasks if isinstance(task, _LEFT_BY_A_CLOSE)]


def _task(run_id: str, entry: Asked | OwedToOthers | OwedDeletion) -> Task:
    if isinstance(entry, OwedDeletion):
        return DeleteRun(run_id=run_id)
    return _TASKS[type(entry)](
        run_id=run_id,
        initiated_event_id=entry.initiated_event_id,
        namespace=entry.namespace,
        workflow_id=entry.workflow_id,
    )


def owe(draft: TransitionBuilder) -> None:
    """The run is about to close: what it has asked and not heard of is owed from now on, in the order of asking; its
    end reaches its children behind that."""
    state = draft.state
    moved: list[OwedToOthers] = [
        OwedSignal(
            run_id=state.run_id,
            initiated_event_id=pending.initiated_event_id,
            namespace=pending.namespace,
            workflow_id=pending.workflow_id,
            initiated_seq=pending.initiated_seq,
            next_dispatch=pending.next_dispatch or draft.now,
            dispatches=pending.dispatches,
            asked_by=pending.asked_by,
        )
        for pending in state.external_signals.values()
    ]
    moved += [
        OwedCancel(
            run_id=state.run_id,
            initiated_event_id=pending.initiated_event_id,
            namespace=pending.namespace,
            workflow_id=pending.workflow_id,
            initiated_seq=pending.initiated_seq,
            next_dispatch=pending.next_dispatch or draft.now,
            dispatches=pending.dispatches,
            asked_by=pending.asked_by,
        )
        for pending in state.external_cancels.values()
    ]
    children = parent_close.owed_children(draft)
    moved += children
    if not moved:
        return
    moved.sort(key=lambda entry: (_is_policy(entry), entry.initiated_event_id))
    draft.put_owed((*state.owed, *moved))
    draft.tasks += [_task(state.run_id, entry) for entry in children]


def _is_policy(entry: OwedToOthers) -> bool:
    return isinstance(entry, OwedChild) and (entry.watched or entry.policy is not ParentClosePolicy.ABANDON)


def record(draft: TransitionBuilder, answers: Sequence[Answer]) -> None:
    """Takes answers in: as events where the run that asked is open, else what it owed is done. A repeat finds neither
    and does nothing. The caller ends with ``inbox.settle``."""
    discharged = {done for answer in answers if (done := _taken(draft, answer)) is not None}
    if not discharged:
        return
    owed = draft.state.owed
    left = tuple([entry for entry in owed if _identity(entry) not in discharged])
    if len(left) < len(owed):
        draft.put_owed(left)
        # A deletion waits for what the run owes others.
        runs = {run_id for run_id, _, _ in discharged}
        draft.tasks += [
            _task(entry.run_id, entry) for entry in left if isinstance(entry, OwedDeletion) and entry.run_id in runs
        ]


_Identity = tuple[str, int, ParentLink | None]


def _taken(draft: TransitionBuilder, answer: Answer) -> _Identity | None:
    """Which debt of a closed run the answer ends, if it does."""
    match answer:
        case Delivery():
            ends = not _delivered(draft, answer)
        case ChildAnswer() if answer.run_id == draft.state.run_id and draft.state.close_time is None:
            child.answered(draft, answer)
            return None
        case ChildAnswer():
            ends = _ends_debt(draft.state.owed, answer)
        case ChildClosed():
            child.closed(draft, answer)
            return None
        case Discharged():
            return answer.run_id, answer.initiated_event_id, answer.waiter
        case _:
            assert_never(answer)
    return (answer.run_id, answer.initiated_event_id, None) if ends else None


def _identity(entry: Owed) -> _Identity:
    if isinstance(entry, OwedArchive):
        return "", 0, None
    if isinstance(entry, OwedDeletion):
        return entry.run_id, 0, None
    waiter = entry.waiter if isinstance(entry, OwedNotice) else None
    return entry.run_id, entry.initiated_event_id, waiter


def _delivered(draft: TransitionBuilder, delivery: Delivery) -> bool:
    """Whether the run that asked is there to take the answer, or has it already."""
    state = draft.state
    asked = delivery.initiated_event_id
    if delivery.run_id != state.run_id or not (asked in state.external_signals or asked in state.external_cancels):
        return False
    if asked not in draft.ended:
        is_signal = asked in state.external_signals
        inbox.receive(draft, _signaled(delivery) if is_signal else _cancel_requested(delivery))
        draft.ended.add(asked)
    return True


def _ends_debt(owed: Iterable[Owed], answer: ChildAnswer) -> bool:
    """Of a closed parent. A start that was made all the same leaves its parent-close policy to be carried out."""
    return answer.cause is not None or any(
        isinstance(entry, OwedChild)
        and (entry.run_id, entry.initiated_event_id) == (answer.run_id, answer.initiated_event_id)
        and entry.policy is ParentClosePolicy.ABANDON
        and not entry.watched
        for entry in owed
    )


def dispatch_again(draft: TransitionBuilder) -> None:
    """Sends again what is due, owed or pending, with the next time to do so."""
    state = draft.state
    now = draft.now
    for pending in list(asked_of_others(state)):
        if not pending.next_dispatch or pending.next_dispatch > now or pending.initiated_event_id in draft.ended:
            continue
        dispatches = pending.dispatches + 1
        draft.put_asked(_replace(pending, dispatches=dispatches, next_dispatch=now + redispatch_after(dispatches)))
        draft.tasks.append(_task(state.run_id, pending))
    if any(entry.next_dispatch <= now for entry in state.owed):
        draft.put_owed(tuple([_sent_again(draft, entry) for entry in state.owed]))


def _sent_again(draft: TransitionBuilder, entry: Owed) -> Owed:
    if entry.next_dispatch > draft.now:
        return entry
    dispatches = entry.dispatches + 1
    draft.tasks.append(ArchiveRuns() if isinstance(entry, OwedArchive) else _task(entry.run_id, entry))
    return _replace(entry, dispatches=dispatches, next_dispatch=draft.now + redispatch_after(dispatches))


def _signaled(delivery: Delivery) -> EventAttributes:
    if delivery.cause is None:
        return ExternalWorkflowExecutionSignaled(
            initiated_event_id=delivery.initiated_event_id,
            namespace=delivery.namespace,
            workflow_execution=delivery.execution,
        )
    return SignalExternalWorkflowExecutionFailed(
        cause=SignalExternalWorkflowExecutionFailedCause(delivery.cause.value),
        workflow_task_completed_event_id=delivery.workflow_task_completed_event_id,
        initiated_event_id=delivery.initiated_event_id,
        namespace=delivery.namespace,
        workflow_execution=delivery.execution,
    )


def _cancel_requested(delivery: Delivery) -> EventAttributes:
    if delivery.cause is None:
        return ExternalWorkflowExecutionCancelRequested(
            initiated_event_id=delivery.initiated_event_id,
            namespace=delivery.namespace,
            workflow_execution=delivery.execution,
        )
    return RequestCancelExternalWorkflowExecutionFailed(
        cause=CancelExternalWorkflowExecutionFailedCause(delivery.cause.value),
        workflow_task_completed_event_id=delivery.workflow_task_completed_event_id,
        initiated_event_id=delivery.initiated_event_id,
        namespace=delivery.namespace,
        workflow_execution=delivery.execution,
    )
