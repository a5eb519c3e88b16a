"""What Temporal's own server recorded and exported replays in our replayer. Files are added to, never edited."""

import json
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import events as ev
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer

from tests.replay.temporal_workflows import WORKFLOWS

_SCHEDULED = "workflowTaskScheduledEventAttributes"
HISTORIES = sorted((Path(__file__).parent / "temporal_histories").glob("*.json"))


def _read(name: str) -> WorkflowHistory:
    return WorkflowHistory.from_json("", (Path(__file__).parent / f"temporal_histories/{name}.json").read_bytes())


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_what_temporal_exported_replays(path: Path) -> None:
    history = WorkflowHistory.from_json("", path.read_bytes())

    result = await Replayer(workflows=WORKFLOWS).replay_workflow(history, raise_on_replay_failure=False)

    assert result.replay_failure is None
    assert history.workflow_id == f"exported-{path.stem}"
    assert WorkflowHistory.from_json("", history.to_json()).events == history.events


def test_there_are_histories_of_each_kind() -> None:
    assert [path.stem for path in HISTORIES] == ["activities", "cancelled", "chain", "children", "messages"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("activities", '"name": "echo"', '"name": "charge"'),
        ("activities", '"timerId": "1"', '"timerId": "2"'),
        ("children", '"exported-children-good"', '"exported-children-other"'),
        ("messages", "WORKFLOW_PROPERTIES_MODIFIED", "WORKFLOW_EXECUTION_PAUSED"),
    ],
)
async def test_another_history_is_told_apart(name: str, old: str, new: str) -> None:
    path = Path(__file__).parent / f"temporal_histories/{name}.json"
    text = path.read_text().replace(old, new)
    assert new in text

    result = await Replayer(workflows=WORKFLOWS).replay_workflow(
        WorkflowHistory.from_json("", text), raise_on_replay_failure=False
    )

    assert result.replay_failure is not None


async def test_the_results_of_the_run_are_read() -> None:
    """Not only commands: what the workflow returned is what it returns here."""
    expected_of = {"activities": ["parcel, ApplicationError", "a", "b"], "messages": ["one", "two", "LOUD"]}
    for name, expected in expected_of.items():
        [*_, last] = _read(name).events
        assert isinstance(last.attributes, ev.WorkflowExecutionCompleted)
        assert json.loads(last.attributes.result[0].data) == expected


def test_values_are_ours() -> None:
    history = _read("activities")
    by_type = {event.event_type: event for event in history.events}

    scheduled: Any = by_type["ActivityTaskScheduled"].attributes
    assert (scheduled.activity_type, scheduled.task_queue) == ("echo", "exported")
    assert scheduled.start_to_close_timeout.total_seconds() == 10
    assert scheduled.schedule_to_close_timeout is None
    failed: Any = by_type["ActivityTaskFailed"].attributes
    assert failed.retry_state == "NON_RETRYABLE_FAILURE"
    assert (failed.failure.info.failure_type, failed.failure.info.non_retryable) == ("Refused", True)
    assert json.loads(failed.failure.info.details[0].data) == {"code": 7}
    timer = by_type["TimerStarted"]
    assert timer.user_metadata is not None and timer.user_metadata.summary is not None
    assert json.loads(timer.user_metadata.summary.data) == "a pause"
    assert history.run_id == history.events[0].attributes.original_execution_run_id  # type: ignore[union-attr]


def test_forms_of_the_export() -> None:
    """As a list, as a mapping, and in the words of old servers."""
    data = json.loads((Path(__file__).parent / "temporal_histories/chain.json").read_bytes())
    events = _read("chain").events
    assert WorkflowHistory.from_json("", data).events == events
    assert WorkflowHistory.from_json("", json.dumps(data["events"])).events == events

    for event in data["events"]:
        event["eventType"] = "".join(part.capitalize() for part in event["eventType"].split("_")[2:])
    old = json.dumps(data).replace("CONTINUE_AS_NEW_INITIATOR_WORKFLOW", "Workflow")
    assert WorkflowHistory.from_json("", old).events == events


def test_what_cannot_be_read_names_its_event() -> None:
    data = json.loads((Path(__file__).parent / "temporal_histories/chain.json").read_bytes())
    for change, message in (
        ({"eventType": "EVENT_TYPE_NEXUS_OPERATION_SCHEDULED"}, r"event 2 .*not known here"),
        ({"eventTime": "yesterday"}, r"event 2 .*cannot be read"),
        (
            {"workflowTaskScheduledEventAttributes": {"startToCloseTimeout": "soon"}},
            r"event 2 .*'soon' is not a duration",
        ),
        ({_SCHEDULED: {}}, r"event 2 .*task_queue"),
    ):
        events = [data["events"][0], {**data["events"][1], **change}, *data["events"][2:]]
        with pytest.raises(ValueError, match=message):
            WorkflowHistory.from_json("", {"events": events})
