"""How ports' values look in columns, and multi-row statements.

A statement with many rows is one call into SQLite: the writer thread gives up the interpreter lock once and takes it
back once, instead of once per row, which on a busy event loop would cost up to a switch interval (5 ms) each time.
Row counts are powers of two, so that few statements are ever prepared.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_CHUNK = 64


def to_us(time: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def to_run(run_id: str) -> bytes | str:
    """16 bytes for a UUID in its usual form, which sort as the text does; any other id stays text."""
    if len(run_id) == 36:
        try:
            run = bytes.fromhex(run_id.replace("-", ""))
        except ValueError:
            return run_id
        if len(run) == 16 and from_run(run) == run_id:
            return run
    return run_id


def from_run(run: bytes | str) -> str:
    if isinstance(run, str):
        return run
    text = run.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def execute_rows(connection: sqlite3.Connection, before: str, rows: Sequence[tuple[Any, ...]], after: str = "") -> int:
    """Runs ``before VALUES (…), … after`` over all rows; the number of rows changed."""
    if len(rows) == 1:
        row = rows[0]
        return connection.execute(_statement(before, 1, len(row), after), row).rowcount
    changed = 0
    for chunk in _chunks(rows):
        statement = _statement(before, len(chunk), len(chunk[0]), after)
        changed += connection.execute(statement, tuple(chain.from_iterable(chunk))).rowcount
    return changed


def select_rows(
    connection: sqlite3.Connection, before: str, rows: Sequence[tuple[Any, ...]], after: str
) -> Iterator[tuple[Any, ...]]:
    """The same for a query."""
    for chunk in _chunks(rows):
        statement = _statement(before, len(chunk), len(chunk[0]), after)
        yield from connection.execute(statement, tuple(chain.from_iterable(chunk))).fetchall()


@cache
def _statement(before: str, rows: int, columns: int, after: str) -> str:
    row = "(" + ",".join("?" * columns) + ")"
    return f"{before} VALUES {','.join([row] * rows)} {after}"


def _chunks(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    start, size, count = 0, _LARGEST_CHUNK, len(rows)
    if count == 1:
        yield rows
        return
    while start < count:
        while size > count - start:
            size //= 2
        yield rows[start : start + size]
        start += size
