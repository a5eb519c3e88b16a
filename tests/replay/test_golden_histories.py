"""Histories that each release recorded replay in this one, command for command. Files are added to, never edited."""

from pathlib import Path

import pytest
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer

from tests.replay.golden_workflows import WORKFLOWS

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*/*.json"))


def test_there_are_golden_histories_of_every_release() -> None:
    assert {path.parent.name for path in HISTORIES} >= {"0.1.0"}
    assert len(HISTORIES) >= 18


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_golden_history_replays(path: Path) -> None:
    history = WorkflowHistory.from_json("", path.read_text())
    result = await Replayer(workflows=WORKFLOWS).replay_workflow(history)
    assert result.replay_failure is None
    assert WorkflowHistory.from_json("", history.to_json()).events == history.events


async def test_a_golden_history_does_bite() -> None:
    """The check that all others rest on: a history of other commands is told apart."""
    history = WorkflowHistory.from_json(
        "", (Path(__file__).parent / "histories/0.1.0/sequence-cached.json").read_text()
    )
    text = history.to_json().replace('"activity_type":"echo"', '"activity_type":"charge"')
    assert "charge" in text
    result = await Replayer(workflows=WORKFLOWS).replay_workflow(
        WorkflowHistory.from_json("", text), raise_on_replay_failure=False
    )
    assert result.replay_failure is not None
    assert "charge" in str(result.replay_failure)
