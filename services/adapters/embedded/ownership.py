"""One process owns a database file: an operating-system lock on a file beside it, which dies with its process.

A lock on the database file itself would be lost whenever this process closes any descriptor of it, so it lies on
``<database>-lock``. POSIX record locks are used, since a forked child (a process-pool activity) does not inherit them
and so cannot keep the file locked after its parent was killed. They do not bind within one process; a set does.
"""

import os
import sys
import threading
from pathlib import Path

from .errors import DatabaseInUse, DatabaseRefused

_owned: set[Path] = set()
_owned_lock = threading.Lock()


class Ownership:
    """Held from creation until :meth:`release` or the end of the process."""

    def __init__(self, database: Path) -> None:
        """Raises :class:`DatabaseInUse`, :class:`DatabaseRefused` when the lock file cannot be made."""
        self._path = database.with_name(database.name + "-lock")
        with _owned_lock:
            if self._path in _owned:
                raise _in_use(database, os.getpid())
            self._descriptor = self._acquire(database)
            _owned.add(self._path)

    def _acquire(self, database: Path) -> int:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        except OSError as error:
            raise DatabaseRefused(
                f"cannot open {database}: its lock file {self._path} cannot be written ({error.strerror}); "
                "give this user write permission on the file and its folder, or choose another path"
            ) from error
        if not _try_lock(descriptor):
            holder = _read_pid(descriptor)
            os.close(descriptor)
            raise _in_use(database, holder)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor

    def release(self) -> None:
        """Lets another process have the file. The lock file stays: removing it would race with its next owner."""
        with _owned_lock:
            if self._path in _owned:
                os.ftruncate(self._descriptor, 0)
                os.close(self._descriptor)
                _owned.discard(self._path)


def _in_use(database: Path, pid: int) -> DatabaseInUse:
    holder = f"process {pid}" if pid else "another process"
    if pid == os.getpid():
        holder = f"this process ({pid})"
    return DatabaseInUse(
        f"{database} is in use by {holder}, and one process at a time may write it; "
        "stop that process, connect to its server instead, or choose another path",
        pid,
    )


def _read_pid(descriptor: int) -> int:
    os.lseek(descriptor, 0, os.SEEK_SET)
    text = os.read(descriptor, 32).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else 0


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Behind the pid: a locked range cannot be read by others on this platform.
        os.lseek(descriptor, 1024, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True
