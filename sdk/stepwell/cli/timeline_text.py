"""Bars over time as lines of text, as wide as the terminal is; with plain characters where others cannot be shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from .text import safe, shorten, span_text
from .timeline_bars import Bar, Kind, Status

MINIMUM_WIDTH = 60
_LABEL, _NOTE = 0.3, 0.28
"""Of the width, at most."""

MAX_REMARKS = 10
_TICK_CELLS = 12
_STEPS = (1, 2, 3, 5, 10, 15, 20, 30)

_STYLES = {
    Status.OPEN: "cyan",
    Status.DONE: "green",
    Status.FAILED: "red",
    Status.TIMED_OUT: "red",
    Status.TERMINATED: "magenta",
    Status.CANCELED: "yellow",
    Status.CONTINUED: "blue",
}
_KINDS = {Kind.TIMER: "blue", Kind.SIGNAL: "magenta", Kind.CANCEL: "yellow", Kind.PAUSE: "bright_yellow"}


@dataclass(frozen=True, slots=True)
class Signs:
    waits: str
    runs: str
    timer: str
    mark: str
    bad: str
    open: str


UNICODE = Signs("░", "█", "─", "◆", "✗", "▶")
ASCII = Signs(".", "=", "-", "*", "x", ">")


@dataclass(frozen=True, slots=True)
class Row:
    bar: Bar
    depth: int = 0
    left_out: int = 0
    """Stands for so many bars, in place of one."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The time that is shown, and the space for it."""

    start: datetime
    end: datetime
    width: int
    signs: Signs

    @property
    def span(self) -> timedelta:
        return max(self.end - self.start, timedelta(milliseconds=1))

    def column(self, at: datetime, cells: int) -> int:
        return min(cells - 1, max(0, int((at - self.start) / self.span * cells)))


def drawn(rows: Iterable[Row], frame: Frame) -> list[Text]:
    """One line for each row below a scale of time."""
    shown = list(rows)
    notes = [_note(row, frame) for row in shown]
    labels = [_label(row) for row in shown]
    label = min(max(map(cell_len, labels), default=0), int(frame.width * _LABEL))
    note = min(max(map(cell_len, notes), default=0), int(frame.width * _NOTE))
    cells = max(frame.width - label - note - 4, 10)
    lines = [Text(" " * (label + 2)).append(_scale(frame, cells), style="dim")]
    for row, name, words in zip(shown, labels, notes, strict=True):
        line = Text(set_cell_size(_cut(name, label, frame), label) + "  ", style="bold" if row.depth == 0 else "")
        line.append_text(_drawn_bar(row, frame, cells)).append("  ")
        line.append(_cut(words, note, frame), style="red" if row.bar.status.bad else "dim")
        line.rstrip()
        lines.append(line)
    return lines


def legend(signs: Signs) -> Text:
    parts = (
        (signs.waits, "waits, or earlier attempts"),
        (signs.runs, "runs"),
        (signs.timer, "timer"),
        (signs.mark, "message"),
        (signs.bad, "failed"),
        (signs.open, "open"),
    )
    return Text("  ".join(f"{sign} {words}" for sign, words in parts), style="dim")


def _label(row: Row) -> str:
    if row.left_out:
        return "  " * row.depth + f"{row.left_out} more"
    bar = row.bar
    name = bar.name if bar.kind in (Kind.WORKFLOW, Kind.TASK) else f"{bar.kind} {bar.name}"
    times = f" x{len(bar.marks)}" if len(bar.marks) > 1 else ""
    return "  " * row.depth + safe(name).replace("\n", " ") + times


def _note(row: Row, frame: Frame) -> str:
    bar = row.bar
    if row.left_out:
        return "see --limit"
    parts: list[str] = []
    if not bar.marks:
        parts.append(span_text((bar.end or frame.end) - bar.start))
    if bar.status not in (Status.DONE, Status.OPEN):
        parts.append(bar.status)
    if bar.attempt > 1:
        parts.append(f"attempt {bar.attempt}")
    return ", ".join(parts)


def remarks(rows: Iterable[Row], signs: Signs) -> list[Text]:
    """What failed, and why."""
    lines: list[Text] = []
    for row in rows:
        if row.bar.note and not row.left_out:
            bad = row.bar.status.bad
            sign = signs.bad if bad else signs.open if row.bar.end is None else " "
            words = f"{sign} {_label(row).strip()}: {shorten(safe(row.bar.note))}"
            lines.append(Text(words, style="red" if bad else "yellow" if row.bar.end is None else "dim"))
    if len(lines) > MAX_REMARKS:
        lines = [*lines[:MAX_REMARKS], Text(f"  and {len(lines) - MAX_REMARKS} more", style="dim")]
    return lines


def _cut(text: str, cells: int, frame: Frame) -> str:
    if cell_len(text) <= cells:
        return text
    dots = "…" if frame.signs is UNICODE else "~"
    return set_cell_size(text, max(cells - 1, 0)) + dots


def _drawn_bar(row: Row, frame: Frame, cells: int) -> Text:
    bar, signs = row.bar, frame.signs
    if row.left_out:
        return Text(" " * cells)
    style = _KINDS.get(bar.kind, _STYLES[bar.status]) if not bar.status.bad else _STYLES[bar.status]
    drawn = [" "] * cells
    if bar.marks:
        for at in bar.marks:
            drawn[frame.column(at, cells)] = signs.bad if bar.status.bad else signs.mark
        return Text("".join(drawn), style=style)
    first, last = frame.column(bar.start, cells), frame.column(bar.end or frame.end, cells)
    for cell in range(first, last + 1):
        drawn[cell] = _inside(bar, signs)
    if bar.kind in (Kind.ACTIVITY, Kind.CHILD, Kind.WORKFLOW):
        began = _began(bar)
        runs = last + 1 if began is None else frame.column(began, cells)
        for cell in range(first, min(runs, last + 1)):
            drawn[cell] = signs.waits
    if bar.status.bad:
        drawn[last] = signs.bad
    elif bar.end is None:
        drawn[last] = signs.open
    return Text("".join(drawn), style=style)


def _began(bar: Bar) -> datetime | None:
    """When what is drawn as running began. Old histories do not say it of activities that have ended."""
    if bar.attempt_start is None and (bar.kind is Kind.WORKFLOW or bar.end is not None):
        return bar.start
    return bar.attempt_start


def _inside(bar: Bar, signs: Signs) -> str:
    return signs.timer if bar.kind in (Kind.TIMER, Kind.PAUSE, Kind.SENT) else signs.runs


def _scale(frame: Frame, cells: int) -> str:
    """Distances from the start, at round values, each at the cell that it belongs to."""
    step = _step(frame.span.total_seconds() * _TICK_CELLS / cells)
    line = [" "] * (cells + _TICK_CELLS)
    free = 0
    for number in range(cells):
        seconds = number * step
        at = int(seconds / frame.span.total_seconds() * cells)
        if at >= cells:
            break
        words = "|" + (span_text(timedelta(seconds=seconds)) if number else "0")
        if at >= free and at + len(words) <= cells:
            line[at : at + len(words)] = words
            free = at + len(words) + 1
    return "".join(line[:cells]).rstrip()


def _step(least: float) -> float:
    """A round number of seconds, minutes, hours or days that is not below ``least``."""
    for unit in (0.001, 0.01, 0.1, 1.0, 60.0, 3_600.0):
        for step in _STEPS:
            if unit * step >= least:
                return unit * step
    days = 1
    while days * 86_400 < least:
        days *= 2
    return days * 86_400.0
