"""How many tasks a queue dispatches per second (TQ-08): a token bucket with room for the tokens of one second."""

import math

_ALMOST = 1.0 - 1e-9
"""A token, less what the arithmetic may lose."""


class RateLimit:
    """Time comes in as monotonic seconds."""

    __slots__ = ("_rate", "_room", "_since", "_tokens")

    def __init__(self, rate: float, now: float) -> None:
        """``rate`` is above zero. The bucket is full at first."""
        self._rate = rate
        self._room = self._tokens = max(1.0, math.ceil(rate))
        self._since = now

    @property
    def rate(self) -> float:
        return self._rate

    def change(self, rate: float, now: float) -> None:
        """What was gathered at the old rate is kept, as far as there is room."""
        self._fill(now)
        self._rate = rate
        self._room = max(1.0, math.ceil(rate))
        self._tokens = min(self._tokens, self._room)

    def take(self, now: float) -> bool:
        """Whether one task may go out now; then it counts."""
        self._fill(now)
        if self._tokens < _ALMOST:
            return False
        self._tokens -= 1.0
        return True

    def available(self, now: float) -> int:
        """How many tasks may go out now."""
        self._fill(now)
        return int(self._tokens + 1.0 - _ALMOST)

    def give_back(self) -> None:
        """A task that was counted did not go out."""
        self._tokens = min(self._tokens + 1.0, self._room)

    def seconds_to_next(self, now: float) -> float:
        """0 when one may go out at once."""
        self._fill(now)
        return max(0.0, (1.0 - self._tokens) / self._rate) if self._tokens < _ALMOST else 0.0

    def _fill(self, now: float) -> None:
        self._tokens = min(self._tokens + max(0.0, now - self._since) * self._rate, self._room)
        self._since = max(self._since, now)
