"""Request ids that a workflow id remembers, so that a repeated call finds its own result (design section 3, LC-01).

They ride in the state, so they are few: a ring for each kind, that the others do not push out of. What a ring has lost
is in the log still (``request_log``): the ring of every commit holds what that commit took in.
"""

from hashlib import blake2b

from .requests import EarlierStart
from .state import ExecutionState

SIGNAL = "signal"
CANCEL = "cancel"
START = "start"
RESET = "reset"
PAUSE = "pause"

KEPT = {SIGNAL: 64, START: 16, CANCEL: 8, RESET: 8, PAUSE: 4}
"""Newest ids of each kind. About 1 KB together, as hashes do not compress. Signals: more than one commit takes in, so
that the rings of two commits in a row always overlap."""

_LENGTH = 16
"""An entry of a signal is its digest alone, of a start ``digest=run id``, of one that met an open run ``digest=run
id/first run id``, of any other kind ``kind:digest``, behind which that of a reset has ``=run id``. (Release 0.1.0 kept
cancels as it did signals; nobody asked for them.)"""


def _digest(kind: str, request_id: str) -> str:
    return blake2b(f"{kind}:{request_id}".encode(), digest_size=_LENGTH // 2).hexdigest()


def entry(kind: str, request_id: str) -> str:
    """What a ring holds of this id."""
    digest = _digest(kind, request_id)
    return digest if kind == SIGNAL else f"{kind}:{digest}"


def ring(state: ExecutionState, kind: str) -> list[str]:
    """Entries of that kind, newest last."""
    known = state.request_ids
    if kind == SIGNAL:
        return [one for one in known if ":" not in one and "=" not in one]
    if kind == START:
        return [one for one in known if one[_LENGTH : _LENGTH + 1] == "="]
    return [one for one in known if one.startswith(kind + ":")]


def is_known(state: ExecutionState, kind: str, request_id: str) -> bool:
    """An empty request id is never known."""
    return bool(request_id) and entry(kind, request_id) in state.request_ids


def remember(state: ExecutionState, kind: str, request_id: str) -> None:
    if request_id:
        _put(state, kind, entry(kind, request_id))


def remember_start(state: ExecutionState, request_id: str, run_id: str) -> None:
    if request_id:
        _put(state, START, f"{_digest(START, request_id)}={run_id}")


def remember_attached(state: ExecutionState, request_id: str) -> None:
    """A start that met this open run (LC-04)."""
    if request_id:
        _put(state, START, f"{_digest(START, request_id)}={state.run_id}/{state.first_run_id}")


def remember_reset(state: ExecutionState, request_id: str, run_id: str) -> None:
    if request_id:
        _put(state, RESET, f"{entry(RESET, request_id)}={run_id}")


def reset_run(state: ExecutionState, request_id: str) -> str | None:
    """The run that an earlier reset with this request id made."""
    if not request_id:
        return None
    prefix = entry(RESET, request_id) + "="
    for known in state.request_ids:
        if known.startswith(prefix):
            return known.removeprefix(prefix)
    return None


def _put(state: ExecutionState, kind: str, new: str) -> None:
    """The oldest one of its own kind makes room."""
    known = state.request_ids
    if len(known) >= KEPT[kind]:
        mine = ring(state, kind)
        for old in mine[: max(0, len(mine) + 1 - KEPT[kind])]:
            at = known.index(old)
            known = known[:at] + known[at + 1 :]
    state.request_ids = (*known, new)


def started(state: ExecutionState, request_id: str) -> EarlierStart | None:
    """What an earlier start with this request id was answered, in the head's run or an older one."""
    if not request_id:
        return None
    found = started_in(ring(state, START), request_id, state)
    if found is None and request_id == state.start_request_id:
        return EarlierStart(run_id=state.run_id, first_run_id=state.first_run_id)
    return found


def started_in(entries: list[str], request_id: str, head: ExecutionState) -> EarlierStart | None:
    """The same by the entries of a ring, of which ``head`` has the newest."""
    prefix = _digest(START, request_id) + "="
    for known in entries:
        if known.startswith(prefix):
            run_id, attached, first_run_id = known.removeprefix(prefix).partition("/")
            if not attached:
                first_run_id = head.first_run_id if run_id == head.run_id else run_id
            return EarlierStart(run_id=run_id, first_run_id=first_run_id, started=not attached)
    return None
