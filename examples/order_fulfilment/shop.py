"""The world outside for the example: payment service, warehouse and support desk, kept in a file of their own.

They behave as good services do: a request with an idempotency key they have seen is answered as before and done once.
And as real ones do: ``expect_trouble`` makes the payment service fail, before or after it has taken the money.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .records import Order, Payment

_TABLES = """
CREATE TABLE IF NOT EXISTS charges (
    payment_id INTEGER PRIMARY KEY, idempotency_key TEXT UNIQUE, order_id TEXT, amount_cents INTEGER, refunded INTEGER);
CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, order_id TEXT, service TEXT, answer TEXT);
CREATE TABLE IF NOT EXISTS trouble (id INTEGER PRIMARY KEY, order_id TEXT, kind TEXT);
CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, available INTEGER);
CREATE TABLE IF NOT EXISTS reservations (idempotency_key TEXT PRIMARY KEY, order_id TEXT, item TEXT, quantity INTEGER);
CREATE TABLE IF NOT EXISTS cases (case_id INTEGER PRIMARY KEY, idempotency_key TEXT UNIQUE, order_id TEXT, reason TEXT);
"""


class OutOfStock(Exception):
    """The warehouse has fewer pieces than were asked for."""


class Trouble(StrEnum):
    """Ways in which a request to the payment service fails."""

    REFUSED = "connection refused"
    """Before anything was done."""
    ANSWER_LOST = "connection lost before the answer came"
    """After the money was taken: the case for which idempotency keys exist."""
    HANGS = "no answer"
    """As above, and the caller waits and learns nothing, long enough to be killed while it waits."""


@dataclass(frozen=True)
class Charge:
    """One line of the payment service's book; ``requests`` counts all calls for the order, failed ones included."""

    payment_id: str
    order_id: str
    amount_cents: int
    refunded: bool
    requests: int


class Shop:
    """The three services. Any number of processes may use the same file."""

    def __init__(self, path: str | Path, hang_seconds: float = 20.0) -> None:
        self._path = Path(path)
        self._hang_seconds = hang_seconds

    def set_up(self, stock: dict[str, int]) -> None:
        """Makes the file if it is not there; the warehouse then has the given numbers of pieces."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO stock VALUES (?, ?)", stock.items())

    def expect_trouble(self, order_id: str, *kinds: Trouble) -> None:
        """The next requests for this order's payment fail in these ways, one after the other."""
        with self._transaction() as connection:
            connection.executemany("INSERT INTO trouble (order_id, kind) VALUES (?, ?)", [(order_id, k) for k in kinds])

    def charge(self, idempotency_key: str, order: Order) -> Payment:
        """Take the order's amount. Raises ConnectionError in trouble; the money may be taken all the same."""
        with self._transaction() as connection:
            trouble = _next_trouble(connection, order.order_id)
            if trouble is not Trouble.REFUSED:
                connection.execute(
                    "INSERT OR IGNORE INTO charges VALUES (NULL, ?, ?, ?, 0)",
                    (idempotency_key, order.order_id, order.amount_cents),
                )
            answer = str(trouble) if trouble else "charged"
            connection.execute(
                "INSERT INTO requests (order_id, service, answer) VALUES (?, 'payment', ?)", (order.order_id, answer)
            )
            row = connection.execute(
                "SELECT payment_id FROM charges WHERE idempotency_key = ?", (idempotency_key,)
            ).fetchone()
        if trouble is Trouble.HANGS:
            time.sleep(self._hang_seconds)
        if trouble is not None:
            raise ConnectionError(f"payment service: {trouble}")
        return Payment(f"pay-{row[0]}", order.order_id, order.amount_cents)

    def refund(self, payment_id: str) -> None:
        """Give the money of a payment back; once, however often it is asked for."""
        with self._transaction() as connection:
            number = int(payment_id.removeprefix("pay-"))
            connection.execute("UPDATE charges SET refunded = 1 WHERE payment_id = ?", (number,))

    def reserve(self, idempotency_key: str, order: Order) -> None:
        """Raises OutOfStock when there are too few pieces."""
        with self._transaction() as connection:
            if connection.execute(
                "SELECT 1 FROM reservations WHERE idempotency_key = ?", (idempotency_key,)
            ).fetchone():
                return
            row = connection.execute("SELECT available FROM stock WHERE item = ?", (order.item,)).fetchone()
            available = row[0] if row else 0
            if available < order.quantity:
                raise OutOfStock(f"{order.quantity} x {order.item} asked for, {available} left")
            connection.execute(
                "UPDATE stock SET available = available - ? WHERE item = ?", (order.quantity, order.item)
            )
            connection.execute(
                "INSERT INTO reservations VALUES (?, ?, ?, ?)",
                (idempotency_key, order.order_id, order.item, order.quantity),
            )

    def open_case(self, idempotency_key: str, order_id: str, reason: str) -> str:
        """The number of the support case for this key, opened unless it is there already."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO cases (idempotency_key, order_id, reason) VALUES (?, ?, ?)",
                (idempotency_key, order_id, reason),
            )
            row = connection.execute(
                "SELECT case_id FROM cases WHERE idempotency_key = ?", (idempotency_key,)
            ).fetchone()
            return f"case-{row[0]}"

    def charges(self) -> list[Charge]:
        """The payment service's book."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT payment_id, order_id, amount_cents, refunded, (SELECT count(*) FROM requests r "
                "WHERE r.order_id = charges.order_id) FROM charges ORDER BY payment_id"
            ).fetchall()
        return [Charge(f"pay-{row[0]}", row[1], row[2], bool(row[3]), row[4]) for row in rows]

    def reserved(self, item: str) -> int:
        """How many pieces are set aside for orders."""
        with self._transaction() as connection:
            row = connection.execute("SELECT sum(quantity) FROM reservations WHERE item = ?", (item,)).fetchone()
            return row[0] or 0

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        try:
            connection.executescript(_TABLES)
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()


def _next_trouble(connection: sqlite3.Connection, order_id: str) -> Trouble | None:
    row = connection.execute(
        "SELECT id, kind FROM trouble WHERE order_id = ? ORDER BY id LIMIT 1", (order_id,)
    ).fetchone()
    if row is None:
        return None
    connection.execute("DELETE FROM trouble WHERE id = ?", (row[0],))
    return Trouble(row[1])
