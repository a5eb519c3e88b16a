"""The harness itself: expectations can fail, and none is left over."""

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import events as e
from stepwell.api.events import HistoryEvent

from tests.support.expected_history import as_text, first_misfit, read_sections

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.txt"))
HISTORY: list[Any] = [
    e.WorkflowTaskScheduled(task_queue="q", start_to_close_timeout=timedelta(seconds=10)),
    e.WorkflowTaskStarted(scheduled_event_id=1),
    e.WorkflowTaskCompleted(scheduled_event_id=1, started_event_id=2),
    e.TimerStarted(timer_id="1", start_to_fire_timeout=timedelta(seconds=1), workflow_task_completed_event_id=3),
    e.TimerFired(timer_id="1", started_event_id=4),
]
EVENTS = [
    HistoryEvent(event_id=number, event_time=datetime(2026, 1, 1, tzinfo=UTC), attributes=attributes)
    for number, attributes in enumerate(HISTORY, 1)
]


@pytest.mark.parametrize(
    ("text", "misfit"),
    [
        ('WorkflowTask\nTimerStarted timer_id="1" start_to_fire_timeout=1.0\nTimerFired started_event_id=4', ""),
        ("WorkflowTask\n...\nTimerFired", ""),
        ("...", ""),
        ("...\nTimerFired\n...", ""),
        ("WorkflowTask\nTimerStarted\nTimerFired\n...", ""),
        ("WorkflowTask\nTimerStarted", "goes on"),
        ("WorkflowTask\nTimerFired", "line 3 has no event that fits: TimerFired"),
        ('WorkflowTask\nTimerStarted timer_id="2"\n...', 'line 3 has no event that fits: TimerStarted timer_id="2"'),
        ("WorkflowTask\nTimerStarted timer_ids=1\n...", "line 3"),
        ("...\nTimerFired\nTimerFired", "line 4"),
    ],
)
def test_fitting(tmp_path: Path, text: str, misfit: str) -> None:
    (tmp_path / "expected.txt").write_text(f"[test]\n{text}\n")
    said = first_misfit(read_sections(tmp_path / "expected.txt")["test"], EVENTS)

    assert misfit in said and bool(said) == bool(misfit)


def test_a_history_fits_what_it_is_written_as(tmp_path: Path) -> None:
    text = as_text(EVENTS)
    (tmp_path / "expected.txt").write_text(f"[test]\n{text}\n")

    assert text == 'WorkflowTask\nTimerStarted timer_id="1" start_to_fire_timeout=1.0\nTimerFired timer_id="1"'
    assert first_misfit(read_sections(tmp_path / "expected.txt")["test"], EVENTS) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TimerFired", "before the first"),
        ("[a]\n[a]", "twice"),
        ("[a]\nTimerFired timer_id", "not of the form"),
        ("[a]\nTimerFired timer_id=one", "Expecting value"),
    ],
)
def test_what_is_no_expectation(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "expected.txt").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_sections(tmp_path / "expected.txt")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_expectation_is_left_over(folder: Path) -> None:
    """A section of a test that was renamed would claim something that nobody checks."""
    tests = {
        statement.name
        for file in folder.glob("test_*.py")
        for statement in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {section.partition(" ")[0] for section in read_sections(folder / "expected.txt")} <= tests
