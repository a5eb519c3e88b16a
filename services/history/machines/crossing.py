"""What a run asks of other executions, from the asker's side: sent again until it is answered, and owed behind a close
(design sections 7 and 9).

A question is pending in the run that asked; a close moves it to ``owed``, which the next run of the id carries on, so
that it is delivered all the same. Only its answer, or a ``Discharge``, takes it off.
"""

from collections.abc import Iterable, Sequence

import msgspec
from stepwell.api.events import ExternalWorkflowExecutionSignaled, SignalExternalWorkflowExecutionFailed

from ..builder import TransitionBuilder
from ..deadlines import redispatch_after
from ..requests import Delivery
from ..state import Owed, OwedSignal
from ..tasks import SignalExternal, Task
from . import inbox

_replace = msgspec.structs.replace


def tasks_of(tasks: Iterable[Task]) -> list[Task]:
    """The tasks that go to other executions: what is left of a run's tasks when it closes."""
    return [task for task in tasks if isinstance(task, SignalExternal)]


def owe(draft: TransitionBuilder) -> None:
    """The run is about to close: what it has asked and not heard of is owed from now on, in the order of asking."""
    state = draft.state
    if not state.external_signals:
        return
    moved = [
        OwedSignal(
            run_id=state.run_id,
            initiated_event_id=pending.initiated_event_id,
            namespace=pending.namespace,
            workflow_id=pending.workflow_id,
            initiated_seq=pending.initiated_seq,
            next_dispatch=pending.next_dispatch or draft.now,
            dispatches=pending.dispatches,
        )
        for pending in state.external_signals.values()
    ]
    draft.put_owed((*state.owed, *moved))


def record(draft: TransitionBuilder, deliveries: Sequence[Delivery]) -> None:
    """Takes answers in: as events where the run that asked is open, else what it owed is done. A repeat finds neither
    and does nothing. The caller ends with ``inbox.settle``."""
    state = draft.state
    discharged = set()
    for delivery in deliveries:
        asked = delivery.initiated_event_id
        if delivery.run_id != state.run_id or asked not in state.external_signals:
            discharged.add((delivery.run_id, asked))
        elif asked not in draft.ended:
            inbox.receive(draft, _event(delivery))
            draft.ended.add(asked)
    left = tuple([entry for entry in state.owed if (entry.run_id, entry.initiated_event_id) not in discharged])
    if len(left) < len(state.owed):
        draft.put_owed(left)


def dispatch_again(draft: TransitionBuilder) -> None:
    """Sends again what is due, owed or pending, with the next time to do so."""
    state = draft.state
    now = draft.now
    for pending in list(state.external_signals.values()):
        if not pending.next_dispatch or pending.next_dispatch > now or pending.initiated_event_id in draft.ended:
            continue
        dispatches = pending.dispatches + 1
        draft.put_asked(_replace(pending, dispatches=dispatches, next_dispatch=now + redispatch_after(dispatches)))
        draft.tasks.append(
            SignalExternal(
                run_id=state.run_id,
                initiated_event_id=pending.initiated_event_id,
                namespace=pending.namespace,
                workflow_id=pending.workflow_id,
            )
        )
    if any(entry.next_dispatch <= now for entry in state.owed):
        draft.put_owed(tuple([_sent_again(draft, entry) for entry in state.owed]))


def _sent_again(draft: TransitionBuilder, entry: Owed) -> Owed:
    if entry.next_dispatch > draft.now:
        return entry
    dispatches = entry.dispatches + 1
    draft.tasks.append(
        SignalExternal(
            run_id=entry.run_id,
            initiated_event_id=entry.initiated_event_id,
            namespace=entry.namespace,
            workflow_id=entry.workflow_id,
        )
    )
    return _replace(entry, dispatches=dispatches, next_dispatch=draft.now + redispatch_after(dispatches))


def _event(delivery: Delivery) -> ExternalWorkflowExecutionSignaled | SignalExternalWorkflowExecutionFailed:
    if delivery.cause is None:
        return ExternalWorkflowExecutionSignaled(
            initiated_event_id=delivery.initiated_event_id,
            namespace=delivery.namespace,
            workflow_execution=delivery.execution,
        )
    return SignalExternalWorkflowExecutionFailed(
        cause=delivery.cause,
        workflow_task_completed_event_id=delivery.workflow_task_completed_event_id,
        initiated_event_id=delivery.initiated_event_id,
        namespace=delivery.namespace,
        workflow_execution=delivery.execution,
    )
