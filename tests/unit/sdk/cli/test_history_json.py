"""``stepwell workflow fix-history-json``: what Temporal's tools exported, in our form (DX-01)."""

import json
from pathlib import Path

import pytest
from stepwell.cli import main
from stepwell.replay.history import WorkflowHistory

EXPORTED = Path(__file__).parents[3] / "replay" / "temporal_histories" / "messages.json"
COMMAND = ("workflow", "fix-history-json")


def run(*arguments: str) -> None:
    main([*COMMAND, *arguments])


def _as_old_servers_wrote(text: str) -> str:
    """``EVENT_TYPE_TIMER_FIRED`` as ``TimerFired``."""
    export = json.loads(text)
    for event in export["events"]:
        words = event["eventType"].removeprefix("EVENT_TYPE_").split("_")
        event["eventType"] = "".join(word.capitalize() for word in words)
    return json.dumps(export)


@pytest.mark.parametrize("old", [False, True])
def test_an_export_of_temporal_in_our_form(old: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = EXPORTED.read_text()
    source = tmp_path / "exported.json"
    source.write_text(_as_old_servers_wrote(text) if old else text)
    run("--source", str(source))
    written = capsys.readouterr().out
    assert "eventId" not in written
    assert WorkflowHistory.from_json("", written) == WorkflowHistory.from_json("", text)


def test_our_own_form_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "source.json", tmp_path / "target.json"
    source.write_text(WorkflowHistory.from_json("", EXPORTED.read_text()).to_json())
    run("--source", str(source), "--target", str(target))
    assert target.read_text().strip() == source.read_text().strip()
    assert "Wrote" in capsys.readouterr().out


def test_what_is_no_history_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "source.json", tmp_path / "target.json"
    source.write_text('{"events": [{"event_id": 1, "type": "Nothing"}]}')
    with pytest.raises(SystemExit) as exited:
        run("--source", str(source), "--target", str(target))
    assert exited.value.code == 2
    said = capsys.readouterr()
    assert str(source) in said.err and said.out == ""
    assert not target.exists()


def test_a_target_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        run("--source", str(EXPORTED), "--target", str(tmp_path / "nowhere" / "target.json"))
    assert exited.value.code == 2
    assert "cannot be written" in capsys.readouterr().err
