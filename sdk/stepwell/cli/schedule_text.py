"""Schedules for people: when they act, in words; what they did last and do next."""

import re
import struct
from collections.abc import Iterator
from datetime import datetime, tzinfo
from io import BytesIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.console import Console
from rich.text import Text

from ..api.limits import DEFAULT_CATCHUP_WINDOW
from ..api.requests import DescribeScheduleResponse
from ..api.schedules import ScheduleCalendarSpec, ScheduleListEntry, SchedulePolicies, ScheduleRange, ScheduleSpec
from .output import key_values, print_table, section, status_text, table
from .text import distance_text, local_text, payload_text, payloads_text, safe, shorten, span_text, time_text

_PARTS = ("second", "minute", "hour", "day_of_month", "month", "year", "day_of_week")
_DEFAULTS = ScheduleCalendarSpec()
_CRON_ZONE = re.compile(r"\s*(?:CRON_)?TZ=(\S+)\s")


def times_text(spec: ScheduleSpec) -> list[str]:
    """One line for each source of times; none: only when it is triggered."""
    return [
        *(f'cron "{text}"' for text in spec.cron_expressions),
        *(
            f"every {span_text(one.every)}" + (f" + {span_text(one.offset)}" if one.offset else "")
            for one in spec.intervals
        ),
        *(calendar_text(one) for one in spec.calendars),
    ]


def calendar_text(calendar: ScheduleCalendarSpec) -> str:
    """The parts that say something, such as ``hour 9-17/2, day_of_week 1-5``."""
    said = [
        f"{part} {','.join(map(_range_text, getattr(calendar, part)))}"
        for part in _PARTS
        if getattr(calendar, part) != getattr(_DEFAULTS, part)
    ]
    words = ", ".join(said) or "every day at midnight"
    return f"{words} ({calendar.comment})" if calendar.comment else words


def _range_text(one: ScheduleRange) -> str:
    end = f"-{one.end}" if one.end > one.start else ""
    return f"{one.start}{end}" + (f"/{one.step}" if one.step > 1 else "")


def zone_name(spec: ScheduleSpec) -> str:
    """Its own, or that of its cron strings; empty: UTC."""
    named = (_CRON_ZONE.match(text) for text in spec.cron_expressions)
    return spec.time_zone_name or next((found[1] for found in named if found), "")


def zone_of(spec: ScheduleSpec) -> tzinfo | None:
    """None: UTC, or it is not known on this machine."""
    name = zone_name(spec)
    try:
        if spec.time_zone_data:
            return ZoneInfo.from_file(BytesIO(spec.time_zone_data), key=name or None)
        return ZoneInfo(name) if name not in ("", "UTC") else None
    except (ZoneInfoNotFoundError, ValueError, LookupError, OSError, struct.error):
        return None


def print_schedule(schedule_id: str, described: DescribeScheduleResponse, now: datetime, to: Console) -> None:
    schedule, info = described.schedule, described.info
    spec, state, action = schedule.spec, schedule.state, schedule.action.start_workflow
    zone = zone_of(spec)
    when = times_text(spec) or ["only when it is triggered"]
    limited = f"{state.remaining_actions} more" if state.limited_actions else ""
    starts: tuple[tuple[str, str], ...] = ()
    if action is not None:
        starts = (
            ("Starts", f"{action.workflow_type} on {action.task_queue}"),
            ("Workflow id", action.workflow_id),
            ("Input", shorten(payloads_text(action.input))),
        )
    key_values(
        (
            ("Schedule", schedule_id),
            ("State", _state(state.paused)),
            ("Note", state.note),
            ("When", "\n".join(when)),
            ("Not", "\n".join(map(calendar_text, spec.skip))),
            ("Time zone", _zone_text(spec)),
            ("From", local_text(spec.start_at, zone)),
            ("Until", local_text(spec.end_at, zone)),
            ("Jitter", span_text(spec.jitter) if spec.jitter else ""),
            *starts,
            ("Rules", ", ".join(_rules(schedule.policies))),
            ("Limit", limited),
            ("Done", _counts(described)),
            ("Refused", shorten(info.last_refusal)),
            ("Running", ", ".join(f"{run.workflow_id} (run {run.run_id})" for run in info.running_workflows)),
            ("Created", time_text(info.create_time)),
            ("Changed", time_text(info.update_time)),
            ("Memo", ", ".join(f"{name}={shorten(payload_text(value))}" for name, value in described.memo.items())),
        ),
        to,
    )
    section(
        "Last actions",
        ("FOR", "DONE", "WORKFLOW ID", "STATUS"),
        (
            (
                local_text(one.schedule_time, zone),
                distance_text(one.actual_time, now),
                one.start_workflow_result.workflow_id if one.start_workflow_result is not None else "",
                Text("") if one.start_workflow_status is None else status_text(one.start_workflow_status),
            )
            for one in info.recent_actions
        ),
        to,
    )
    if not state.paused:
        section(
            "Next actions",
            ("AT", "IN"),
            ((local_text(at, zone), distance_text(at, now)) for at in info.future_action_times),
            to,
        )


def _zone_text(spec: ScheduleSpec) -> str:
    name = zone_name(spec) or ("of the file that it was given" if spec.time_zone_data else "UTC")
    known = zone_of(spec) is not None or (name == "UTC" and not spec.time_zone_data)
    return name if known else f"{name} (not known on this machine: times are in UTC)"


def _state(paused: bool) -> Text:
    return Text("PAUSED", style="bright_yellow") if paused else Text("ACTIVE", style="green")


def _rules(policies: SchedulePolicies) -> Iterator[str]:
    yield f"overlap {policies.overlap_policy}"
    if policies.concurrency_limit:
        yield f"at most {policies.concurrency_limit} open"
    yield f"catches up {span_text(policies.catchup_window or DEFAULT_CATCHUP_WINDOW)}"
    if policies.pause_on_failure:
        yield "pauses on failure"
    if policies.keep_original_workflow_id:
        yield "keeps the workflow id"


def _counts(described: DescribeScheduleResponse) -> str:
    info = described.info
    counts = (
        (info.action_count, "action" if info.action_count == 1 else "actions"),
        (info.overlap_skipped, "skipped for overlap"),
        (info.missed_catchup_window, "missed, too late"),
        (info.missed_paused, "missed while paused"),
        (info.buffer_dropped, "dropped from a full buffer"),
        (info.start_refused, "refused"),
        (info.rate_delayed, "delayed by the namespace's rate of starts"),
        (info.buffer_size, "waiting"),
    )
    return ", ".join(f"{count:,} {words}" for count, words in counts if count or words == "actions")


def print_schedules(found: list[ScheduleListEntry], now: datetime, to: Console) -> None:
    rows = table("STATE", "SCHEDULE", "TYPE", "WHEN", "LAST", "NEXT", "NOTE")
    for entry in found:
        info = entry.info
        last = info.recent_actions[-1].actual_time if info.recent_actions else None
        following = None if info.paused or not info.future_action_times else info.future_action_times[0]
        rows.add_row(
            _state(info.paused),
            *(
                Text(safe(shorten(words)))
                for words in (
                    entry.schedule_id,
                    info.workflow_type,
                    "; ".join(times_text(info.spec)),
                    distance_text(last, now),
                    distance_text(following, now),
                    info.note,
                )
            ),
        )
    print_table(rows, to)
