"""From one run to the next of the same workflow id, in one commit (design section 3).

What ends in a next run, whoever asks for it (a start over an open run, continue-as-new, a retry of the workflow, its
cron schedule), goes through :func:`succeed`. No crash can come between the end and the beginning, and what a lost
answer makes be asked again finds both.
"""

from collections.abc import Sequence

import msgspec
from stepwell.api.common import UserMetadata
from stepwell.api.events import EventAttributes, WorkflowExecutionSignaled, WorkflowExecutionStarted

from .. import placement
from ..builder import TransitionBuilder
from ..state import BufferedEvent, ExecutionState
from . import closing, inbox, update, workflow_task

_replace = msgspec.structs.replace


def succeed(
    draft: TransitionBuilder,
    closing_event: EventAttributes,
    started: WorkflowExecutionStarted,
    run_id: str,
    carried: Sequence[BufferedEvent] = (),
    user_metadata: UserMetadata | None = None,
) -> ExecutionState:
    """Closes the draft's run with ``closing_event`` and goes on with a draft of the next run, ``run_id``.

    Call it where a machine would call ``closing.close`` (a command that closes, a run timeout, a terminate), with
    everything that the closing run is to show recorded before: for an end by the server that is ``inbox.flush``; for an
    end by the workflow's own command the completion has placed what its token lists. Behind it ``draft.state``,
    ``events`` and ``tasks`` are the next run's, and every machine works on them as on any run; a reply about the run
    that closed is made from the state that this returns. ``draft.finish`` makes the one transition of both, whichever
    arguments it is given; both states have the seq of its one commit.

    - ``closing_event`` names the next run itself, where it has a field for it (``new_execution_run_id``).
    - ``started``: all that the next run starts with. ``original_execution_run_id`` is set here. In the same chain
      (``first_execution_run_id`` is the closed run's) the expiration time of the execution is set here too: it is the
      chain's, and no run extends it. The core mints no ids: ``run_id`` comes with the request.
    - Its ``completion_callbacks`` are set here in the same chain, too.
    - ``carried``: buffered messages that the closed run has not seen and that are for the workflow id rather than for
      the run (signals, admitted updates), in their order. They are taken out of its buffer and are the first events
      behind WorkflowExecutionStarted. Ends of activities that are still buffered go with their run. Anything else
      that is buffered was promised to the closed run and raises ValueError: refuse the close before, or ``flush``.
    - Passed on by itself: in the same chain admitted updates that the closed run has not answered (all others are
      refused); request ids, and the mark of the completion that closed the run, so that its repeat gets its
      answer (a completion therefore sets the mark before its commands are carried out). Nothing is armed at first;
      what the closed run had armed is struck off with the commit.

    The caller goes on with :func:`begin`. Without it the next run has neither a workflow task nor a visibility record.
    """
    closed = draft.state
    chosen = {entry.index for entry in carried}
    for entry in closed.buffered:
        if entry.index not in chosen and not hasattr(entry.attributes, "scheduled_event_id"):
            raise ValueError(
                f"run {closed.run_id} cannot close: it has not seen {type(entry.attributes).__name__} {entry.index}"
            )
    closed.buffered = ()
    waiting = placement.admitted(closed)
    goes_on = started.first_execution_run_id == closed.first_run_id
    closing.close(draft, closing_event, goes_on=goes_on)
    started = _replace(started, original_execution_run_id=run_id)
    if goes_on:
        started = _replace(
            started,
            workflow_execution_expiration_time=closed.execution_expires,
            completion_callbacks=closed.callbacks,
        )
    draft.succeed(started, user_metadata)
    if goes_on:
        draft.state.waiters = closed.waiters
    for entry in carried:
        inbox.number(draft, entry)
    if goes_on:
        update.pass_on(draft, waiting)
    return closed


def passes_on(entry: BufferedEvent) -> bool:
    """Whether a buffered entry is for the workflow id, and not for the run that is about to close."""
    return isinstance(entry.attributes, WorkflowExecutionSignaled)


def may_be_left(entry: BufferedEvent) -> bool:
    """Whether a run that goes on as another one may close without having seen the entry: it passes on, or it is the
    end of an activity, which means nothing to another run."""
    return passes_on(entry) or hasattr(entry.attributes, "scheduled_event_id")


def begin(draft: TransitionBuilder) -> None:
    """What a run owes that has just begun: its first workflow task now, or when its time comes; and its record."""
    if draft.state.first_task_at is None:
        first_task(draft)
    else:
        draft.tasks.append(closing.visibility(draft.state))


def first_task(draft: TransitionBuilder) -> None:
    """What every run that begins at once owes: its first workflow task, and its visibility record."""
    workflow_task.schedule(draft)
    draft.tasks.append(closing.visibility(draft.state))
