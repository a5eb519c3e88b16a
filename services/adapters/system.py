"""The real clock and the real source of ids."""

import os
import uuid
from datetime import UTC, datetime
from time import monotonic

_NONCE_BYTES = 12
_POOL_BYTES = 4_096


class SystemClock:
    """UTC wall time; ``monotonic`` seconds for spans inside this process."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic()


class _Randomness:
    """Asks the operating system for many bytes at a time: one system call for each id is dear."""

    def __init__(self) -> None:
        self._pool = b""
        self._taken = 0

    def take(self, size: int) -> bytes:
        end = self._taken + size
        if end > len(self._pool):
            self.refill()
            end = size
        data = self._pool[self._taken : end]
        self._taken = end
        return data

    def refill(self) -> None:
        self._pool, self._taken = os.urandom(_POOL_BYTES), 0


_randomness = _Randomness()
# A forked child must not give out what its parent does.
os.register_at_fork(after_in_child=_randomness.refill)


class SystemIds:
    """Random ids from the operating system. Use it from one thread, the event loop's."""

    def run_id(self) -> str:
        return str(uuid.UUID(bytes=_randomness.take(16), version=4))

    def nonce(self) -> str:
        """96 random bits in hex: two writes for the same seq never share one."""
        return _randomness.take(_NONCE_BYTES).hex()
