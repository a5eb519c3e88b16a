"""A local activity: it runs beside the workflow task, and only its end is recorded: ``RecordMarker`` -> MarkerRecorded.

Its retries are the worker's, in process. A failure behind which the next attempt is far off has a marker too, and the
wait for that attempt is a durable timer of the workflow (AC-24).
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from ...api.codec import decode_json, encode_json
from ...api.commands import RecordMarker
from ...api.common import Headers, RetryPolicy, UserMetadata
from ...api.enums import RetryState
from ...api.events import EventAttributes, MarkerRecorded
from ...api.failures import Failure
from ...api.payloads import ENCODING, ENCODING_JSON, Payload, Payloads
from ...converter.signatures import CallableSignature
from .activity import ActivityCancellationType, AwaitedActivity
from .command import Ask

if TYPE_CHECKING:
    from ..runtime import WorkflowRuntime

LOCAL_ACTIVITY_MARKER = "local_activity"

_METADATA = {ENCODING: ENCODING_JSON}


@dataclass(frozen=True, slots=True)
class LocalActivityCall:
    """What the worker is to run: from ``attempt`` on, until the activity ends or its next attempt is far off."""

    activity_id: str
    activity_type: str
    input: Payloads
    scheduled_time: datetime
    """Workflow time at which code asked for it; schedule-to-close counts from here."""
    retry_policy: RetryPolicy
    local_retry_threshold: timedelta
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    headers: Headers = field(default_factory=dict)
    summary: Payload | None = None
    attempt: int = 1
    last_failure: Failure | None = None
    """Of the attempt before this one, for what a timeout says of it (WC-06)."""


@dataclass(frozen=True, slots=True)
class LocalActivityEnd:
    """How it ended, or with ``backoff``: how an attempt failed that is not the last."""

    activity_id: str
    attempt: int
    time: datetime
    """Workflow time from here on: code that goes on behind it sees this as now, live and in replay."""
    result: Payloads = ()
    failure: Failure | None = None
    retry_state: RetryState = RetryState.NON_RETRYABLE_FAILURE
    canceled: bool = False
    backoff: timedelta | None = None
    by_code: bool = False
    """Workflow code did not wait for the end of what it cancelled; nothing is to be told to it."""


@dataclass(frozen=True, slots=True)
class LocalActivityStop:
    """Workflow code has cancelled one that may run."""

    activity_id: str
    interrupt: bool
    """Tell it; else it runs on."""
    awaited: bool
    """Its end is waited for, and recorded."""


class _Recorded(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the marker says beside result and failure."""

    activity_id: str
    activity_type: str
    attempt: int
    time: datetime
    retry_state: RetryState | None = None
    canceled: bool = False
    backoff: timedelta | None = None
    by_code: bool = False


class LocalActivityMachine(AwaitedActivity):
    """Lives from its call to its end, over all attempts."""

    __slots__ = ("_cancellation_type", "begun", "call", "stopping", "waits_for_timer")

    def __init__(
        self,
        runtime: "WorkflowRuntime",
        call: LocalActivityCall,
        signature: CallableSignature,
        cancellation_type: ActivityCancellationType,
    ) -> None:
        super().__init__(runtime, call.activity_id, call.activity_type, signature)
        self.call = call
        self._cancellation_type = cancellation_type
        self.begun = False
        """An attempt runs, or may."""
        self.stopping = False
        self.waits_for_timer: asyncio.TimerHandle | None = None
        """The handle of the timer before its next attempt."""

    def cancel(self) -> bool:
        if self._runtime.evicting:
            return True
        waits = self._cancellation_type is ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        if waits and self.begun:
            if not self.stopping:
                self.stopping = True
                self._runtime.local.stop(self)
            return False
        self._runtime.local.give_up(self, abandon=self._cancellation_type is ActivityCancellationType.ABANDON)
        return True

    @property
    def asked_to_stop(self) -> bool:
        return self.stopping


class LocalActivityMarker(Ask):
    """Matched by the activity's id and type, and by whether code cancelled it."""

    __slots__ = ("_activity_type", "_end", "_summary")

    def __init__(self, call: LocalActivityCall, end: LocalActivityEnd) -> None:
        self._activity_type = call.activity_type
        self._summary = call.summary
        self._end = end

    def command(self) -> RecordMarker:
        end = self._end
        data = _Recorded(
            activity_id=end.activity_id,
            activity_type=self._activity_type,
            attempt=end.attempt,
            time=end.time,
            retry_state=end.retry_state if end.failure is not None else None,
            canceled=end.canceled,
            backoff=end.backoff,
            by_code=end.by_code,
        )
        details = {"data": Payload(metadata=_METADATA, data=encode_json(data))}
        if end.result:
            details["result"] = end.result[0]
        return RecordMarker(
            marker_name=LOCAL_ACTIVITY_MARKER,
            details=details,
            failure=end.failure,
            user_metadata=None if self._summary is None else UserMetadata(summary=self._summary),
        )

    def matches(self, recorded: EventAttributes) -> bool:
        data = _recorded(recorded)
        return (
            data is not None
            and data.activity_id == self._end.activity_id
            and data.activity_type == self._activity_type
            and data.by_code == self._end.by_code
        )

    def describe(self) -> str:
        return f"RecordMarker (local activity_type {self._activity_type!r}, activity_id {self._end.activity_id!r})"


def _recorded(attributes: EventAttributes) -> _Recorded | None:
    if type(attributes) is not MarkerRecorded or attributes.marker_name != LOCAL_ACTIVITY_MARKER:
        return None
    data = attributes.details.get("data")
    try:
        return None if data is None else decode_json(data.data, _Recorded)
    except msgspec.DecodeError:
        return None  # somebody else's marker


def recorded_end(attributes: EventAttributes) -> tuple[str, LocalActivityEnd] | None:
    """The activity's type and end that a marker tells of; None for any other event."""
    data = _recorded(attributes)
    if data is None:
        return None
    assert isinstance(attributes, MarkerRecorded)
    result = attributes.details.get("result")
    end = LocalActivityEnd(
        activity_id=data.activity_id,
        attempt=data.attempt,
        time=data.time,
        result=() if result is None else (result,),
        failure=attributes.failure,
        retry_state=data.retry_state or RetryState.NON_RETRYABLE_FAILURE,
        canceled=data.canceled,
        backoff=data.backoff,
        by_code=data.by_code,
    )
    return data.activity_type, end
