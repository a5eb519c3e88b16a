"""Markers: put-if-absent of small values by name. Puts that wait for the writer share its next transaction."""

import asyncio
import sqlite3
from typing import Any, NamedTuple

from ...history.commit import ExecutionKey
from ...history.ports import Marker
from .group_commit import Committer
from .values import from_us
from .writes import WriteTables

MOST_TOGETHER = 500
"""Puts in one transaction; about 5 ms of work for the writer."""

DELETED_TOGETHER = 1_000

_PUT = (
    "INSERT INTO markers (namespace, workflow_id, name, value, expires_us) VALUES (?1, ?2, ?3, ?4, ?5) "
    "ON CONFLICT (namespace, workflow_id, name) DO UPDATE SET value = excluded.value, expires_us = excluded.expires_us "
    "WHERE markers.expires_us <= ?6"
)
GET = "SELECT value, expires_us FROM markers WHERE namespace = ? AND workflow_id = ? AND name = ?"


class Put(NamedTuple):
    key: ExecutionKey
    name: str
    value: bytes
    expires_us: int
    now_us: int


class MarkerPuts:
    """The event loop's side: while a transaction with puts is under way, the next ones collect."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._waiting: list[tuple[Put, asyncio.Future[Marker]]] = []
        self._busy = False

    def put(self, put: Put) -> "asyncio.Future[Marker]":
        done: asyncio.Future[Marker] = asyncio.get_running_loop().create_future()
        self._waiting.append((put, done))
        if not self._busy:
            self._send()
        return done

    def _send(self) -> None:
        batch, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        puts = [put for put, _ in batch]
        futures = [done for _, done in batch]

        def work(connection: sqlite3.Connection, tables: WriteTables) -> list[Marker]:
            return [_carry_out(connection, put) for put in puts]

        def written(answer: "asyncio.Future[list[Marker]]") -> None:
            self._busy = False
            if self._waiting:
                self._send()
            _settle(futures, answer)

        self._busy = True
        self._committer.submit(work).add_done_callback(written)


def _carry_out(connection: sqlite3.Connection, put: Put) -> Marker:
    connection.execute(_PUT, (*put.key, put.name, put.value, put.expires_us, put.now_us))
    return found(connection.execute(GET, (*put.key, put.name)).fetchone())


def _settle(futures: "list[asyncio.Future[Marker]]", answer: "asyncio.Future[list[Marker]]") -> None:
    if answer.cancelled():
        for done in futures:
            done.cancel()
        return
    error = answer.exception()
    for number, done in enumerate(futures):
        if done.done():
            continue  # its caller was cancelled; the put stands
        if error is None:
            done.set_result(answer.result()[number])
        else:
            done.set_exception(error)


def found(row: Any) -> Marker:
    value, expires_us = row
    return Marker(bytes(value), from_us(expires_us))


def delete_expired(connection: sqlite3.Connection, expired_before_us: int) -> bool:
    """Deletes one batch; whether there are more."""
    deleted = connection.execute(
        "DELETE FROM markers WHERE (namespace, workflow_id, name) IN "
        "(SELECT namespace, workflow_id, name FROM markers WHERE expires_us < ? ORDER BY expires_us LIMIT ?)",
        (expired_before_us, DELETED_TOGETHER),
    ).rowcount
    return deleted == DELETED_TOGETHER
