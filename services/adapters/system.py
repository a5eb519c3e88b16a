"""The real clock and the real source of ids."""

import os
import time
import uuid
from datetime import UTC, datetime


class SystemClock:
    """UTC wall time; ``monotonic`` seconds for spans inside this process."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class SystemIds:
    """Random ids from the operating system."""

    def run_id(self) -> str:
        return str(uuid.uuid4())

    def nonce(self) -> str:
        """96 random bits in hex: two writes for the same seq never share one."""
        return os.urandom(12).hex()
