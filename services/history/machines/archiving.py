"""What a close owes the archive (OP-06): whatever closed the run, and before retention may have it.

All runs of an id that are to be archived are one debt, a range of closes, so that a chain of runs whose archive cannot
be written for long carries on no more than that. It is due some time behind the first close in it; like all that is
owed, its deadline asks for it again and again, and until it is paid retention keeps what it covers.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from ..builder import TransitionBuilder, unchanged
from ..requests import FireDeadline, RecordArchived, Request
from ..state import ExecutionState, Owed, OwedArchive, OwedDeletion
from ..tasks import ArchiveRuns, DeleteRun
from ..transition import Transition
from .run_checks import is_deleted

_replace = msgspec.structs.replace
_NEXT_ROW = timedelta(milliseconds=1)


def owe(
    before: ExecutionState | None, transition: Transition, request: Request, now: datetime, after: timedelta
) -> Transition:
    """The transition with the debt for what it closes, due ``after`` the close, and a deadline that asks for it."""
    if not any(_closed_by(before, transition)):
        return transition
    state = transition.state
    entry = owed_archive(state)
    if entry is None:
        entry = OwedArchive(after_seq=state.seq - 1, upto_seq=state.seq, next_dispatch=now + after)
    else:
        entry = _replace(entry, upto_seq=state.seq)
    due = entry.next_dispatch
    state = _replace(state, owed=(*_others(state), entry))
    arm, armed = transition.arm, state.armed
    fired = request.fire_at if isinstance(request, FireDeadline) else None
    if armed is None or armed <= now or due < armed or armed == fired:
        if due == fired:
            due += _NEXT_ROW
        state.armed = arm = armed = due
    wanted = armed if transition.deadline is None else min(transition.deadline, due)
    return _replace(transition, state=state, arm=arm, deadline=wanted, owes=True)


def _closed_by(before: ExecutionState | None, transition: Transition) -> Iterator[bool]:
    """Whether it closes a run, for each that it may have closed."""
    state = transition.state
    yield transition.changed and transition.closed is not None
    was_open = before is None or before.run_id != state.run_id or before.close_time is None
    yield transition.changed and state.close_time is not None and was_open and not is_deleted(state, state.run_id)


def owed_archive(state: ExecutionState) -> OwedArchive | None:
    return next((entry for entry in state.owed if isinstance(entry, OwedArchive)), None)


def awaits(state: ExecutionState, closed_seq: int) -> bool:
    """Whether the run that closed with that commit is still to be archived."""
    entry = owed_archive(state)
    return entry is not None and entry.after_seq < closed_seq <= entry.upto_seq


def _others(state: ExecutionState) -> list[Owed]:
    return [entry for entry in state.owed if not isinstance(entry, OwedArchive)]


def hurry(draft: TransitionBuilder) -> None:
    """A run is to be deleted, which waits for its archive."""
    entry = owed_archive(draft.state)
    if entry is not None:
        draft.put_owed((*_others(draft.state), _replace(entry, next_dispatch=min(entry.next_dispatch, draft.now))))
        draft.tasks.append(ArchiveRuns())


def record(state: ExecutionState, request: RecordArchived, now: datetime) -> Transition:
    """Once: what was archived before changes nothing."""
    entry = owed_archive(state)
    if entry is None or request.upto_seq <= entry.after_seq:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    left = _others(state)
    if request.upto_seq < entry.upto_seq:
        left.append(_replace(entry, after_seq=request.upto_seq))
    draft.put_owed(tuple(left))
    # Deletions wait for the archive of their runs.
    draft.tasks += [DeleteRun(run_id=other.run_id) for other in left if isinstance(other, OwedDeletion)]
    return draft.finish()
