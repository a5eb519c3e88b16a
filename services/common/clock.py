"""Time and ids as ports: the only ways in which they enter the server."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time in UTC (aware), and sleeping by it. ``now`` may jump; callers must survive that."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for measuring short spans inside this process."""
        ...


class IdSource(Protocol):
    def run_id(self) -> str:
        """A new run id: a UUID in text form, of version 7 where ids are real."""
        ...

    def nonce(self) -> str:
        """A new random id for one write."""
        ...
