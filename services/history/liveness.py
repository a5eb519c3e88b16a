"""Is the process that holds a lease provably gone? (ADR 0004)

Only a process on the same machine and in the same process namespace can be judged: then its pid is either dead, or
reused by a process that started at another time. Everything else counts as alive, and the lease's timeout decides. The
facts are those of :class:`ProcessIdentity` as ``stepwell.worker`` fills it in; both come from the kernel, never from a
wall clock.
"""

import os
from functools import cache
from pathlib import Path
from typing import Protocol

from stepwell.api.common import ProcessIdentity

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


@cache
def machine_id() -> str:
    """Boot id and process namespace of this process; empty where the system does not tell (then nobody is judged)."""
    try:
        return f"{_BOOT_ID.read_text(encoding='ascii').strip()}/{_PID_NAMESPACE.readlink()}"
    except OSError:
        return ""


def process_started(pid: int) -> str | None:
    """Start time in clock ticks since boot; None when there is no such process, or only one that has ended and waits
    for its parent to notice. Raises OSError when the system will not tell.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


class Liveness(Protocol):
    """What can be known about processes that hold attempts."""

    def can_tell(self, process: ProcessIdentity | None) -> bool:
        """Whether ``is_gone`` may ever be true of it while this process lives."""
        ...

    def is_gone(self, process: ProcessIdentity | None) -> bool:
        """True only when it is certain that this process will never answer."""
        ...


class SystemLiveness:
    """Asks the kernel. Our own end ends whoever asks as well, so that is never waited for."""

    def __init__(self) -> None:
        self._own_pid = os.getpid()

    def can_tell(self, process: ProcessIdentity | None) -> bool:
        if process is None or not process.machine or process.machine != machine_id():
            return False
        return process.pid != self._own_pid or process.started != process_started(self._own_pid)

    def is_gone(self, process: ProcessIdentity | None) -> bool:
        if process is None or not process.machine or process.machine != machine_id():
            return False
        try:
            started = process_started(process.pid)
        except OSError:
            return False
        return started is None or (bool(process.started) and started != process.started)
