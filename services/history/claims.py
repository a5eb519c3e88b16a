"""Claims: markers that make a call with a key of the user's own count once, for as long as the marker holds (MS-16).

A claim is made before the commit that it is for, and holds the seq of the head at that time. So who finds one knows
where to look: the request is in the state's ring, or in a commit behind that seq, or the claim was left by a crash
between the two and is taken over. No write spans the two items; that the next seq is put-if-absent makes what the
search found out still true when its commit lands, and of two at once the second finds the first one's entry.
"""

from collections.abc import Callable
from datetime import timedelta
from hashlib import blake2b

from ..common.clock import Clock
from . import request_log
from .commit import ExecutionKey
from .ports import ExecutionLog, Marker
from .state import ExecutionState


def marker_name(kind: str, user_key: str) -> str:
    """Keys may be long; names of markers are not."""
    return f"{kind}:{blake2b(user_key.encode(), digest_size=16).hexdigest()}"


class Claims:
    """Raises StoreUnavailable. A claim holds for the ``retention`` of its namespace, so no commit behind it is deleted
    before it expires: it is made while its run is open."""

    def __init__(self, log: ExecutionLog, clock: Clock, retention: Callable[[str], timedelta]) -> None:
        self._log = log
        self._clock = clock
        self._retention = retention

    async def find(self, key: ExecutionKey, name: str) -> int | None:
        """Seq of the claim, if there is one."""
        marker = await self._log.get_marker(key, name)
        if marker is None or marker.expires_at <= self._clock.now():
            return None
        return _seq(marker)

    async def take(self, key: ExecutionKey, name: str, seq: int) -> int:
        """Claims at this head; the seq of the claim that stands, which may be an earlier one."""
        now = self._clock.now()
        value = str(seq).encode()
        return _seq(
            await self._log.put_marker(key, name, value, expires_at=now + self._retention(key.namespace), now=now)
        )

    async def is_done(self, key: ExecutionKey, state: ExecutionState, claim: int, kind: str, request_id: str) -> bool:
        """Whether the claimed request is in a commit up to that of ``state``."""
        return await request_log.committed_since(self._log, key, state, claim, kind, request_id)


def _seq(marker: Marker) -> int:
    return claimed_at(marker.value)


def claimed_at(value: bytes) -> int:
    """Seq of the head at which a claim was made."""
    return int(value)
