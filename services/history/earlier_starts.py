"""Starts of the last minutes by request id, of workflow ids that get more of them than their state remembers (LC-01).

Each start of the id and each one that is attached to its open run (LC-04) pushes an older one out of the ring. What the
ring has lost is in the log still, and is read there as far back as a repeat may come.
"""

from datetime import datetime

import msgspec

from . import request_ids
from .commit import ExecutionKey
from .executions import unavailable
from .ports import ExecutionLog, StoreUnavailable
from .recent_signals import REPEATED_FOR
from .request_log import RingWalk
from .requests import EarlierStart, Start
from .state import ExecutionState

_MOST_READS = 64
"""Of one look: a thousand starts of one workflow id, within the time in which a call is repeated."""


async def marked(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState | None, start: Start, now: datetime
) -> Start:
    """The start, with what an earlier call was answered where the state does not tell any more. Raises Unavailable."""
    request_id = start.start.request_id
    if state is None or not request_id or request_ids.started(state, request_id) is not None:
        return start
    since = now - REPEATED_FOR
    if _newest(state) < since:
        return start
    try:
        earlier = await _found(log, key, state, request_id, since)
    except StoreUnavailable as error:
        raise unavailable(error) from error
    return start if earlier is None else msgspec.structs.replace(start, earlier=earlier)


def _newest(state: ExecutionState) -> datetime:
    """When anything came in last: a start leaves an event, or a buffered one."""
    return max([state.last_event_time, *(entry.time for entry in state.buffered[-1:])])


async def _found(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState, request_id: str, since: datetime
) -> EarlierStart | None:
    walk = RingWalk(log, key, state, request_ids.START)
    for _ in range(_MOST_READS):
        older = await walk.older()
        if older is None:
            return None
        commit, ring = older
        earlier = request_ids.started_in(ring, request_id, commit.state)
        if earlier is not None or commit.time < since:
            return earlier
    return None
