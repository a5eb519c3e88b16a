"""Request ids that a run remembers, so that a repeated call finds its own result (design section 3, LC-01)."""

from hashlib import blake2b

from .state import ExecutionState

REMEMBERED = 64
SIGNAL = "signal"
CANCEL = "cancel"
START = "start"


def _digest(kind: str, request_id: str) -> str:
    return blake2b(f"{kind}:{request_id}".encode(), digest_size=8).hexdigest()


def is_known(state: ExecutionState, kind: str, request_id: str) -> bool:
    """An empty request id is never known."""
    return bool(request_id) and _digest(kind, request_id) in state.request_ids


def remember(state: ExecutionState, kind: str, request_id: str) -> None:
    if request_id:
        state.request_ids = (*state.request_ids, _digest(kind, request_id))[-REMEMBERED:]


def remember_start(state: ExecutionState, request_id: str, run_id: str) -> None:
    if request_id:
        state.request_ids = (*state.request_ids, f"{_digest(START, request_id)}={run_id}")[-REMEMBERED:]


def started_run(state: ExecutionState, request_id: str) -> str | None:
    """The run that an earlier start with this request id made, whether it is the head's or an older one."""
    if not request_id:
        return None
    if request_id == state.start_request_id:
        return state.run_id
    prefix = _digest(START, request_id) + "="
    for entry in state.request_ids:
        if entry.startswith(prefix):
            return entry.removeprefix(prefix)
    return None
