"""Online backup: a consistent copy of the database while the engine runs."""

import os
import sqlite3
from pathlib import Path

from .errors import DatabaseRefused


def back_up(source: sqlite3.Connection, target: Path) -> None:
    """Copies everything committed so far into the new file ``target``, which appears only when it is complete.

    ``source`` is a connection of its own, whose snapshot the copy is; writers go on meanwhile. Raises
    :class:`DatabaseRefused` when the target exists or cannot be written.
    """
    if target.exists():
        raise DatabaseRefused(f"cannot back up to {target}: it exists; name a new file")
    part = part_of(target)
    try:
        part.unlink(missing_ok=True)
        copy = sqlite3.connect(part, isolation_level=None)
        try:
            copy.execute("PRAGMA synchronous = FULL")
            source.backup(copy)
            # One plain file: with the log emptied and switched off nothing of the copy lies in side files.
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()
        os.replace(part, target)
        _sync_directory(target.parent)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise DatabaseRefused(
            f"cannot back up to {target}: {error}; check that its folder exists, may be written and has room"
        ) from error


def part_of(target: Path) -> Path:
    """What the copy is called until it is complete."""
    return target.with_name(target.name + ".part")


def _sync_directory(directory: Path) -> None:
    """Makes the new name durable, where directories can be opened."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
