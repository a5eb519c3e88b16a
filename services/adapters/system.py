"""The real clock and the real source of ids."""

import os
from datetime import UTC, datetime
from time import monotonic

from ..common.clock import Clock

_NONCE_DIGITS = 24
_POOL_DIGITS = 8_192
_VERSION_7 = 0x7 << 76 | 0b10 << 62
_RANDOM_A, _RANDOM_B = (1 << 12) - 1, (1 << 62) - 1


class SystemClock:
    """UTC wall time; ``monotonic`` seconds for spans inside this process."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic()


class _Randomness:
    """Asks the operating system for many bytes at a time: one system call for each id is dear."""

    def __init__(self) -> None:
        self._pool = ""
        self._taken = _POOL_DIGITS

    def take(self, digits: int) -> str:
        """In hex."""
        begin = self._taken
        end = begin + digits
        if end > _POOL_DIGITS:
            self.refill()
            begin, end = 0, digits
        self._taken = end
        return self._pool[begin:end]

    def refill(self) -> None:
        self._pool, self._taken = os.urandom(_POOL_DIGITS // 2).hex(), 0


_randomness = _Randomness()
# A forked child must not give out what its parent does.
os.register_at_fork(after_in_child=_randomness.refill)


class SystemIds:
    """Random ids from the operating system, and the time from the engine's clock. Use it from one thread, the event
    loop's."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._milliseconds = 0

    def run_id(self) -> str:
        """A UUID of version 7 (RFC 9562), as the field's run ids are: those of one process sort by time, also when the
        clock is set back."""
        self._milliseconds = max(self._milliseconds, int(self._clock.now().timestamp() * 1000))
        bits = int(_randomness.take(20), 16)
        value = self._milliseconds << 80 | _VERSION_7 | (bits >> 62 & _RANDOM_A) << 64 | bits & _RANDOM_B
        text = f"{value:032x}"  # what uuid.UUID makes of it, at a fifth of the cost
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def nonce(self) -> str:
        """96 random bits in hex: two writes for the same seq never share one."""
        return _randomness.take(_NONCE_DIGITS)
