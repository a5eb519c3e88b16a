"""What a history from elsewhere must be like before an engine looks at it (LC-46): field by field, as the calls would
have had to be that made it. Whether its events go together is the engine's to say.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, get_type_hints

from stepwell.api import requests as r
from stepwell.api.codec import encode_json
from stepwell.api.common import Priority, RetryPolicy
from stepwell.api.errors import InvalidArgument, PayloadTooLarge
from stepwell.api.events import ActivityTaskScheduled, HistoryEvent
from stepwell.api.limits import MAX_DURATION, MAX_HISTORY_EVENTS, MAX_IMPORT_BYTES, MAX_NONCE_BYTES

from ..history import cron, priorities, retry
from . import fields

_ZERO = timedelta(0)


def import_workflow(request: r.ImportWorkflowRequest) -> None:
    fields.namespace(request.namespace)
    fields.path_identifier("execution.workflow_id", request.execution.workflow_id)
    fields.optional_identifier("execution.run_id", request.execution.run_id)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    events = request.events
    if not events:
        raise InvalidArgument("events is empty; give the whole history, from its first event on", field="events")
    fields.count("number of events", len(events), MAX_HISTORY_EVENTS, way_out="no run may have a longer history")
    size = 0
    for index, event in enumerate(events):
        _event(f"events[{index}]", event)
        size += len(encode_json(event))
        if size > MAX_IMPORT_BYTES:
            raise PayloadTooLarge(
                f"events has more than {MAX_IMPORT_BYTES} bytes, the most that an import takes in; keep the history as "
                "a file, which the Replayer and `stepwell workflow timeline` read",
                field="events",
            )


def _event(where: str, event: HistoryEvent) -> None:
    _time(f"{where}.event_time", event.event_time)
    attributes = event.attributes
    for name, check in _checks(type(attributes)):
        value = getattr(attributes, name)
        if value is not None and value != "":
            check(f"{where}.attributes.{name}", value)
    if isinstance(attributes, ActivityTaskScheduled):
        if attributes.start_to_close_timeout is None and attributes.schedule_to_close_timeout is None:
            raise InvalidArgument(
                f"{where} schedules an activity with neither start_to_close_timeout nor schedule_to_close_timeout; one "
                "of them must be there",
                field=where,
            )


def _time(field: str, value: datetime) -> None:
    if value.tzinfo is None:
        raise InvalidArgument(f"{field} is {value.isoformat()}, without a zone; write it with 'Z'", field=field)


def _wait(field: str, value: timedelta) -> None:
    """A timer may be of no time at all."""
    if not _ZERO <= value <= MAX_DURATION:
        raise InvalidArgument(
            f"{field} is {fields.seconds(value)}; it must be from 0 s to {fields.seconds(MAX_DURATION)}", field=field
        )


def _run_id(field: str, value: str) -> None:
    fields.identifier(field, value, MAX_NONCE_BYTES)


def _retry_policy(field: str, value: RetryPolicy) -> None:
    _say(field, retry.problem_of(value))


def _priority(field: str, value: Priority) -> None:
    _say(field, priorities.problem_of(value))


def _cron(field: str, value: str) -> None:
    try:
        cron.parse(value)
    except cron.BadCron as bad:
        _say(field, str(bad))


def _say(field: str, problem: str) -> None:
    if problem:
        raise InvalidArgument(f"{field}: {problem}; correct the history", field=field)


Check = Callable[[str, Any], None]

_BY_NAME: dict[str, Check] = {
    "cron_schedule": _cron,
    "retry_policy": _retry_policy,
    "priority": _priority,
    **dict.fromkeys(
        ("original_execution_run_id", "first_execution_run_id", "continued_execution_run_id", "new_run_id"), _run_id
    ),
    **dict.fromkeys(
        (
            "activity_id",
            "activity_type",
            "marker_name",
            "signal_name",
            "task_queue",
            "timer_id",
            "workflow_id",
            "workflow_type",
        ),
        fields.path_identifier,
    ),
}

_WAITS = frozenset({"start_to_fire_timeout", "first_workflow_task_backoff", "backoff_start_interval"})


@cache
def _checks(kind: type) -> tuple[tuple[str, Check], ...]:
    """By field, of one type of event: names and policies, and whatever is a time or takes time."""
    found: list[tuple[str, Check]] = []
    for name, hint in get_type_hints(kind).items():
        hinted = str(hint)
        if name in _BY_NAME:
            found.append((name, _BY_NAME[name]))
        elif "timedelta" in hinted:
            found.append((name, _wait if name in _WAITS else fields.duration))
        elif "datetime.datetime" in hinted:
            found.append((name, _time))
    return tuple(found)
