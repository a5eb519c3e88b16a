"""What is stored of the callbacks of a chain of runs that has ended, and what follows from an attempt (LC-10). Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from stepwell.api.callbacks import Callback, CallbackInfo
from stepwell.api.enums import CallbackState
from stepwell.api.events import EventAttributes

from .state import ExecutionState

KIND = "callbacks"

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(hours=1)
"""Between attempts: doubling."""

GIVE_UP = timedelta(days=7)
"""Behind the end of the chain."""

MAX_BODY_BYTES = 250_000
_MAX_FAILURE = 300
_AGAIN = frozenset({408, 425, 429})


class Told(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One callback and how far it is."""

    callback: Callback
    state: CallbackState = CallbackState.SCHEDULED
    attempt: int = 0
    last_time: datetime | None = None
    failure: str = ""
    next_at: datetime | None = None
    """None: it is over."""


class Delivery(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Of one run, the last of its chain. Stored as it is, so new fields have defaults."""

    told: tuple[Told, ...]
    body: bytes
    """Empty once it is needed no more."""
    since: datetime
    kept_until: datetime | None = None
    """Once all are over."""


class Attempt(msgspec.Struct, frozen=True):
    """``status`` 0: there was no answer, ``failure`` says why."""

    status: int = 0
    failure: str = ""
    final: bool = False


class Body(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is posted, as JSON."""

    namespace: str
    workflow_id: str
    run_id: str
    first_execution_run_id: str
    workflow_type: str
    status: str
    close_time: datetime | None
    close_event: EventAttributes | None = None
    """As in the history; left out where it is too large."""
    start_time: datetime | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Delivery).decode
body_of = msgspec.json.Decoder(Body).decode


def encode(delivery: Delivery) -> bytes:
    return _encode(delivery)


def decode(value: bytes) -> Delivery:
    return _decode(value)


def owed(state: ExecutionState, close: EventAttributes, now: datetime) -> Delivery:
    """Of the closed run of this state."""
    body = Body(
        namespace=state.namespace,
        workflow_id=state.workflow_id,
        run_id=state.run_id,
        first_execution_run_id=state.first_run_id,
        workflow_type=state.workflow_type,
        status=state.status.value,
        close_time=state.close_time,
        close_event=close,
        start_time=state.start_time,
    )
    encoded = msgspec.json.encode(body)
    if len(encoded) > MAX_BODY_BYTES:
        encoded = msgspec.json.encode(msgspec.structs.replace(body, close_event=None))
    told = tuple([Told(callback=callback, next_at=now) for callback in state.callbacks])
    return Delivery(told=told, body=encoded, since=now)


def due(delivery: Delivery, now: datetime) -> tuple[int, ...]:
    return tuple([index for index, one in enumerate(delivery.told) if one.next_at is not None and one.next_at <= now])


def attempted(delivery: Delivery, attempts: dict[int, Attempt], now: datetime, retention: timedelta) -> Delivery:
    """``retention``: how long it is to be seen what became of them."""
    told = list(delivery.told)
    for index, attempt in attempts.items():
        told[index] = _after(told[index], attempt, delivery.since, now)
    if any(one.next_at is not None for one in told):
        return msgspec.structs.replace(delivery, told=tuple(told))
    # What is over is only shown: nothing that is secret, or a user's, stays with it.
    shown = tuple(
        [msgspec.structs.replace(one, callback=Callback(url=one.callback.url, form=one.callback.form)) for one in told]
    )
    return msgspec.structs.replace(delivery, told=shown, body=b"", kept_until=now + retention)


def wakes_at(delivery: Delivery) -> datetime | None:
    times = [one.next_at for one in delivery.told if one.next_at is not None]
    return min(times) if times else delivery.kept_until


def infos(told: Sequence[Told]) -> tuple[CallbackInfo, ...]:
    return tuple(
        [
            CallbackInfo(
                url=one.callback.url,
                state=one.state,
                attempt=one.attempt,
                last_attempt_complete_time=one.last_time,
                last_attempt_failure=one.failure,
                next_attempt_schedule_time=one.next_at,
                form=one.callback.form,
            )
            for one in told
        ]
    )


def _after(one: Told, attempt: Attempt, since: datetime, now: datetime) -> Told:
    number = one.attempt + 1
    if 200 <= attempt.status < 300:
        return Told(callback=one.callback, state=CallbackState.SUCCEEDED, attempt=number, last_time=now)
    failure = (attempt.failure or f"it was answered with HTTP {attempt.status}")[:_MAX_FAILURE]
    again = not attempt.final and (attempt.status in _AGAIN or not 0 < attempt.status < 500)
    next_at = now + min(FIRST_PAUSE * 2 ** min(one.attempt, 20), LONGEST_PAUSE)
    if not again or next_at > since + GIVE_UP:
        return Told(callback=one.callback, state=CallbackState.FAILED, attempt=number, last_time=now, failure=failure)
    return Told(
        callback=one.callback,
        state=CallbackState.BACKING_OFF,
        attempt=number,
        last_time=now,
        failure=failure,
        next_at=next_at,
    )
