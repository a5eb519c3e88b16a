"""Who and where this process is: the name people read, its release, and the facts by which an engine can prove it
is gone."""

import os
import socket
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .api.common import ProcessIdentity

try:
    __version__ = version("stepwell")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "unknown"


def default_identity() -> str:
    """``pid@host`` (WK-15)."""
    return f"{os.getpid()}@{socket.gethostname()}"


def process_identity() -> ProcessIdentity | None:
    """This process as ADR 0004 describes it, or None where the platform cannot tell two boots apart."""
    return _process_identity(os.getpid())


@cache
def _process_identity(pid: int) -> ProcessIdentity | None:
    """Cached by pid, so that a forked child does not pass for its parent."""
    machine = _machine()
    started = _started(pid)
    if machine is None or started is None:
        return None
    return ProcessIdentity(machine=machine, pid=pid, started=started)


def _machine() -> str | None:
    """Kernel boot id and process-id namespace: two processes that agree on both see each other's pids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return f"{boot}/{namespace}"


def _started(pid: int) -> str | None:
    """Start time in clock ticks since boot: field 22 of ``/proc/<pid>/stat``, counted behind the command name."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else None
