"""Deadlines as messages of the delay queue: their text, and the whole seconds that they wait there. Pure."""

from datetime import timedelta

import msgspec

from ..history.commit import ExecutionKey
from . import buckets
from .buckets import Awaited, TimerRow

LONGEST_DELAY = 900
"""Seconds; SQS's limit."""

_VERSION = 1
_MICROSECOND = timedelta(microseconds=1)


class BadMessage(Exception):
    """It is no deadline that this release knows. No retry helps."""


class _Body(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Small: it is sent once for each deadline. ``f`` in microseconds, all other times in milliseconds."""

    v: int
    n: str
    w: str
    f: int
    p: int
    a: int
    s: int = 0
    r: str = ""
    e: int = 0
    i: int = 0


def encode(row: TimerRow) -> str:
    awaited = row.awaited
    body = _Body(
        v=_VERSION,
        n=row.key.namespace,
        w=row.key.workflow_id,
        f=(row.fire_at - buckets.EPOCH) // _MICROSECOND,
        p=row.place_ms,
        a=row.armed_ms,
        s=awaited.seq,
        r=awaited.run_id,
        e=awaited.scheduled_event_id,
        i=awaited.version,
    )
    return msgspec.json.encode(body).decode()


def decode(text: str) -> TimerRow:
    try:
        body = msgspec.json.decode(text, type=_Body)
        fire_at = buckets.EPOCH + timedelta(microseconds=body.f)
    except (msgspec.DecodeError, OverflowError) as error:
        raise BadMessage(f"a message of the timer queue is no deadline: {error}") from error
    if body.v != _VERSION:
        raise BadMessage(f"a message of the timer queue has version {body.v}, this release knows {_VERSION}")
    key = ExecutionKey(body.n, body.w)
    return TimerRow(key, fire_at, body.p, body.a, Awaited(body.s, body.r, body.e, body.i), queued=True)


def delay_of(row: TimerRow, now_ms: int) -> int:
    """Whole seconds, rounded up: late by less than one, but not early."""
    return min(max(-(-(row.place_ms - now_ms) // 1_000), 0), LONGEST_DELAY)
