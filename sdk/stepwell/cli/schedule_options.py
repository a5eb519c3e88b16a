"""When a schedule acts, what it does and by which rules, as options: of ``create`` all of them, of ``update`` some."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click
import msgspec

from ..api.enums import ScheduleCatchUpPolicy, ScheduleOverlapPolicy
from ..api.schedules import (
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    SchedulePolicies,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
)
from .options import DURATION, Whole, choice_of
from .troubles import Usage

F = TypeVar("F", bound=Callable[..., Any])

_RANGE = re.compile(r"(?P<start>\*|\w+)(?:-(?P<end>\w+))?(?:/(?P<step>\d+))?")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PARTS: dict[str, tuple[int, int]] = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "year": (2000, 2100),
    "day_of_week": (0, 6),
}
"""Least and greatest, for ``*``."""

_FROM_NOW = re.compile(r"(?P<sign>[+-])(?P<span>.+)")


class Moment(click.ParamType[datetime]):
    """``2026-12-24T18:00:00+01:00``, UTC without a zone; ``now``; ``+2h``, ``-3d``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        now = datetime.now(UTC)
        if text == "now":
            return now
        away = _FROM_NOW.fullmatch(text)
        try:
            if away is not None:
                span = DURATION.convert(away["span"], param, ctx)
                return now + span if away["sign"] == "+" else now - span
            found = datetime.fromisoformat(text)
            return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is no time; write 2026-12-24T18:00:00Z, now, +2h or -3d", param, ctx)


MOMENT = Moment()


class Interval(click.ParamType[ScheduleIntervalSpec]):
    """``90m``, or ``1h/10m`` with an offset."""

    name = "interval"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ScheduleIntervalSpec:
        if isinstance(value, ScheduleIntervalSpec):
            return value
        every, slash, offset = str(value).partition("/")
        return ScheduleIntervalSpec(
            every=DURATION.convert(every, param, ctx),
            offset=DURATION.convert(offset, param, ctx) if slash else timedelta(0),
        )


_EXAMPLE = '{"hour": "9-17/2", "day_of_week": "mon-fri"}'


class Calendar(click.ParamType[ScheduleCalendarSpec]):
    """``{"hour": "9-17/2", "day_of_week": "mon-fri"}``."""

    name = "calendar"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ScheduleCalendarSpec:
        if isinstance(value, ScheduleCalendarSpec):
            return value
        try:
            said = msgspec.json.decode(str(value), type=dict[str, str | int])
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            self.fail(
                f"""{value!r} is no calendar such as {{"hour": "9", "day_of_week": "mon-fri"}}: {error}""", param, ctx
            )
        unknown = sorted(said.keys() - _PARTS.keys() - {"comment"})
        if unknown:
            self.fail(f"a calendar has no {unknown[0]!r}; it has {', '.join(_PARTS)} and comment", param, ctx)
        try:
            ranges = {part: tuple(_ranges(part, str(said[part]))) for part in _PARTS if part in said}
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return ScheduleCalendarSpec(**ranges, comment=str(said.get("comment", "")))


def _ranges(part: str, text: str) -> Iterator[ScheduleRange]:
    """Raises ValueError."""
    least, greatest = _PARTS[part]
    for piece in text.split(","):
        found = _RANGE.fullmatch(piece.strip())
        if found is None:
            raise ValueError(f"{part} {text!r} is no list of numbers and ranges such as 1,5-10/2")
        step = int(found["step"] or 0)
        if found["start"] == "*":
            yield ScheduleRange(least, greatest, step)
            continue
        start = _number(part, found["start"])
        end = _number(part, found["end"]) if found["end"] else greatest if step else 0
        yield ScheduleRange(start, end, step)


def _number(part: str, text: str) -> int:
    names = _DAYS if part == "day_of_week" else _MONTHS if part == "month" else ()
    if text.isdecimal():
        return int(text)
    if len(text) >= 3 and text.lower()[:3] in names:
        return names.index(text.lower()[:3])
    raise ValueError(
        f"{part} {text!r} is no number" + (f", and none of {', '.join(filter(None, names))}" if names else "")
    )


_SPEC = (
    click.option("--cron", "crons", multiple=True, help='Such as "30 9 * * mon-fri", or @daily; repeatable.'),
    click.option("--interval", "intervals", type=Interval(), multiple=True, help="Every 90m, or 1h/10m; repeatable."),
    click.option(
        "--calendar",
        "calendars",
        type=Calendar(),
        multiple=True,
        metavar="JSON",
        help=f"Such as '{_EXAMPLE}'; repeatable.",
    ),
    click.option("--skip", type=Calendar(), multiple=True, metavar="JSON", help="A calendar of times to leave out."),
    click.option("--start-time", type=MOMENT, help="Nothing before, such as 2026-12-24T18:00:00Z, or +2h."),
    click.option("--end-time", type=MOMENT, help="Nothing after."),
    click.option("--jitter", type=DURATION, help="Each action up to so much later."),
    click.option("--time-zone", help="Of calendars and cron, such as Europe/Rome (default UTC)."),
)
_RULES = (
    click.option(
        "--overlap-policy", type=choice_of(ScheduleOverlapPolicy), help="When the last run is open; else SKIP."
    ),
    click.option("--concurrency-limit", type=Whole(min=0), help="Runs that may be open before that counts."),
    click.option("--catchup-window", type=DURATION, help="Times later than this are missed (default 365d)."),
    click.option("--pause-on-failure/--no-pause-on-failure", default=None, help="When a run fails or times out."),
    click.option(
        "--catch-up-on-unpause", type=choice_of(ScheduleCatchUpPolicy), help="What is made up for; else SKIP."
    ),
    click.option("--keep-original-workflow-id/--no-keep-original-workflow-id", default=None, help="No time behind it."),
    click.option("--note", help="For people."),
    click.option("--remaining-actions", type=Whole(min=0), help="Act so many times more; 0 is not limited."),
)


def spec_options(command: F) -> F:
    """Given to the command as ``crons``, ``intervals``, ``calendars``, ``skip``, ``start_time``, ``end_time``,
    ``jitter`` and ``time_zone``, for :func:`spec_of`."""
    for option in reversed(_SPEC):
        command = option(command)
    return command


def rule_options(command: F) -> F:
    """For :func:`policies_of` and :func:`state_of`."""
    for option in reversed(_RULES):
        command = option(command)
    return command


_NO_SPEC, _NO_POLICIES, _NO_STATE = ScheduleSpec(), SchedulePolicies(), ScheduleState()
SPEC_NAMES = ("crons", "intervals", "calendars", "skip", "start_time", "end_time", "jitter", "time_zone")


def spec_of(given: dict[str, Any], before: ScheduleSpec = _NO_SPEC) -> ScheduleSpec:
    """``before`` with what is given; new times take the place of all that were there."""
    said = {
        field: given[option]
        for option, field in (
            ("skip", "skip"),
            ("start_time", "start_at"),
            ("end_time", "end_at"),
            ("jitter", "jitter"),
            ("time_zone", "time_zone_name"),
        )
        if given[option] not in (None, ())
    }
    if given["crons"] or given["intervals"] or given["calendars"]:
        said |= {
            "cron_expressions": given["crons"],
            "intervals": given["intervals"],
            "calendars": given["calendars"],
        }
    if "time_zone_name" in said:
        said["time_zone_data"] = b""
    return msgspec.structs.replace(before, **said)


def names_times(spec: ScheduleSpec) -> bool:
    return bool(spec.cron_expressions or spec.intervals or spec.calendars)


def policies_of(given: dict[str, Any], before: SchedulePolicies = _NO_POLICIES) -> SchedulePolicies:
    said = {
        name: given[name]
        for name in ("concurrency_limit", "catchup_window", "pause_on_failure", "keep_original_workflow_id")
        if given[name] is not None
    }
    if given["overlap_policy"] is not None:
        said["overlap_policy"] = ScheduleOverlapPolicy(given["overlap_policy"])
    if given["catch_up_on_unpause"] is not None:
        said["catch_up_on_unpause"] = ScheduleCatchUpPolicy(given["catch_up_on_unpause"])
    return msgspec.structs.replace(before, **said)


def state_of(given: dict[str, Any], before: ScheduleState = _NO_STATE) -> ScheduleState:
    said: dict[str, Any] = {} if given["note"] is None else {"note": given["note"]}
    remaining = given["remaining_actions"]
    if remaining is not None:
        said |= {"limited_actions": remaining > 0, "remaining_actions": remaining}
    return msgspec.structs.replace(before, **said)


def check_span(start: datetime, end: datetime, first: str = "--start-time", last: str = "--end-time") -> None:
    if end < start:
        raise Usage(f"{last} is before {first}; exchange them")
