"""Keeps the write-ahead log short without making writers wait.

The bulk of a checkpoint (copying pages, one fsync of the database) runs on a thread of its own, beside the writer.
Under constant load that alone never reaches the end of the log, which is where SQLite can begin it anew; so afterwards
the writer thread, behind its next batch, copies the few pages that came in meanwhile.
"""

import logging
import os
import sqlite3
import threading
from pathlib import Path

_log = logging.getLogger(__name__)

_PAGE_BYTES = 4_096
_FRAMES = 1_000
"""Start a checkpoint at about this many pages in the log (4 MB)."""

_FRAMES_FINISH = 500
"""With at most this many pages left to copy the writer finishes the checkpoint itself."""

_GROWN_BYTES = (_FRAMES + 500) * (_PAGE_BYTES + 24)
"""Length that the log gets before the first commit."""


def grow_log(connection: sqlite3.Connection, log: Path) -> None:
    """Gives the log its usual length at once, so that commits overwrite it and do not extend it.

    On ext4 a commit that extends the log costs 1.3 to 2 times as much, since the file's new length is synced as well
    (measured by ``benchmarks/storage.py`` on a new and on a grown log). What follows the last valid frame means nothing
    to SQLite: frames count only with the right salt and checksum. Call it before other connections are open.
    A full disk only means that the log stays short.
    """
    try:
        # SQLite itself makes the file, with the permissions of the database.
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'opened'")
        missing = _GROWN_BYTES - log.stat().st_size
        if missing > 0:
            with log.open("ab") as file:
                file.write(bytes(missing))
                file.flush()
                os.fsync(file.fileno())
    except (OSError, sqlite3.Error) as error:
        _log.warning("%s is not brought to its usual length: %s", log, error)


class Checkpointer:
    """``after_commit`` and ``finish`` belong to the owner of the writing connection, ``_run`` is its own thread."""

    def __init__(self, writer: sqlite3.Connection, own: sqlite3.Connection) -> None:
        self._writer, self._own = writer, own
        self._estimate = 0
        """Pages that are in the log and not in the database: a guess, until a checkpoint tells."""
        self._left: int | None = None
        """What the checkpoint thread left over, when it is done; None while it runs or has not run."""
        self._running = False
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="stepwell-checkpoint", daemon=True)
        self._thread.start()

    def after_commit(self, writes: int, written_bytes: int) -> None:
        self._estimate += 2 + writes // 3 + written_bytes // _PAGE_BYTES
        if not self._running and self._estimate >= _FRAMES:
            self._running, self._left = True, None
            self._wake.set()

    @property
    def can_finish(self) -> bool:
        """The checkpoint thread is done; what it left over is for the writer, who should not be the event loop."""
        return self._running and self._left is not None

    def close(self) -> None:
        """The writer thread has ended before."""
        self._stopped = True
        self._wake.set()
        self._thread.join()
        self._own.close()

    def finish(self) -> None:
        if not self.can_finish:
            return
        left = _checkpoint(self._writer) if (self._left or 0) <= _FRAMES_FINISH else self._left
        self._estimate = left or 0
        self._running = False

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopped:
                return
            self._left = _checkpoint(self._own)


def _checkpoint(connection: sqlite3.Connection) -> int:
    """Copies what no reader still needs from the log; the number of pages left."""
    try:
        _, in_log, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:
        # The log still has everything; a full disk is reported by the writes themselves.
        _log.warning("a checkpoint of the database failed and will be tried again", exc_info=True)
        return _FRAMES_FINISH
    return max(0, int(in_log) - int(copied))
