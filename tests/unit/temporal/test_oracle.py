import base64
import json
from typing import Any

import pytest

from tests.temporal.oracle.compare import Difference, chains, explained, histories, values
from tests.temporal.oracle.normalise import Normaliser
from tests.temporal.oracle.programs import children, generate

RUN, OTHER = "01a22f43-b9ab-7dc1-8c20-74951b032bf9", "01a22f43-d227-7752-8992-aad58352654e"


def _event(number: int, kind: str, **attributes: Any) -> dict[str, Any]:
    key = "".join(word.capitalize() for word in kind.split("_"))
    key = key[0].lower() + key[1:] + "EventAttributes"
    return {
        "eventId": str(number),
        "eventTime": "2026-12-01T00:00:00.1Z",
        "eventType": f"EVENT_TYPE_{kind}",
        "taskId": "9",
        key: attributes,
    }


def _payload(value: Any) -> dict[str, Any]:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    return {"metadata": {"encoding": encoded("json/plain")}, "data": encoded(json.dumps(value))}


def _normal(*events: dict[str, Any], tag: str = "t1") -> list[dict[str, Any]]:
    return Normaliser(tag).history(events)


def test_ids_and_times_of_a_call_are_named_by_their_place() -> None:
    normaliser = Normaliser("t1")
    first = normaliser.history(
        [_event(1, "WORKFLOW_EXECUTION_STARTED", firstExecutionRunId=RUN, workflowId="p7-t1", requestId=OTHER)]
    )
    child = normaliser.history(
        [_event(1, "WORKFLOW_EXECUTION_STARTED", parent={"runId": RUN}, firstExecutionRunId=OTHER)]
    )

    assert first == [
        {"type": "WorkflowExecutionStarted", "attributes": {"firstExecutionRunId": "<id 1>", "workflowId": "p7-<tag>"}}
    ]
    assert child[0]["attributes"] == {"parent": {"runId": "<id 1>"}, "firstExecutionRunId": "<id 2>"}


def test_references_to_events_do_not_depend_on_how_many_stand_before() -> None:
    timer = _event(3, "TIMER_STARTED", timerId="1"), _event(4, "TIMER_FIRED", timerId="1", startedEventId="3")
    later = _event(6, "TIMER_STARTED", timerId="1"), _event(9, "TIMER_FIRED", timerId="1", startedEventId="6")

    assert _normal(*timer) == _normal(*later)
    assert _normal(*timer)[1]["attributes"]["startedEventId"] == "TimerStarted 1"


def test_what_is_empty_says_nothing_but_a_payload_that_is_empty_does() -> None:
    with_empty = _event(1, "TIMER_STARTED", header={}, startToFireTimeout="0s", result={"payloads": [_payload(None)]})
    without = _event(1, "TIMER_STARTED", result={"payloads": [_payload(None)]})

    assert _normal(with_empty) == _normal(without)
    assert _normal(without)[0]["attributes"]["result"]["payloads"] == [{"payload": None, "encoding": "json/plain"}]


def test_payloads_are_read() -> None:
    marker = _event(1, "MARKER_RECORDED", details={"data": {"payloads": [_payload({"seq": 1, "run": RUN})]}})

    [event] = _normal(marker)

    assert event["attributes"]["details"]["data"]["payloads"] == [
        {"payload": {"seq": 1, "run": "<id 1>"}, "encoding": "json/plain"}
    ]


def test_a_task_on_a_sticky_queue_is_a_task_of_the_queue_and_flags_have_no_order() -> None:
    sticky = {"name": "host-1", "kind": "TASK_QUEUE_KIND_STICKY", "normalName": "q"}
    normal = {"name": "q", "kind": "TASK_QUEUE_KIND_NORMAL"}

    assert _normal(_event(1, "WORKFLOW_TASK_SCHEDULED", taskQueue=sticky)) == _normal(
        _event(1, "WORKFLOW_TASK_SCHEDULED", taskQueue=normal)
    )
    assert _normal(_event(1, "WORKFLOW_TASK_COMPLETED", sdkMetadata={"coreUsedFlags": [3, 1]})) == _normal(
        _event(1, "WORKFLOW_TASK_COMPLETED", sdkMetadata={"coreUsedFlags": [1, 3]})
    )


def test_a_value_a_type_and_an_attribute_that_differ_are_seen() -> None:
    fired = _event(1, "TIMER_FIRED", timerId="1")

    assert _normal(fired) != _normal(_event(1, "TIMER_FIRED", timerId="2"))
    assert _normal(fired) != _normal(_event(1, "TIMER_CANCELED", timerId="1"))
    assert _normal(fired) != _normal(_event(1, "TIMER_FIRED", timerId="1", identity="x"))
    assert _normal({**fired, "userMetadata": {"summary": _payload("s")}}) != _normal(fired)


def test_an_event_too_many_is_one_difference_and_those_behind_it_are_compared_all_the_same() -> None:
    theirs = _normal(
        _event(1, "TIMER_STARTED"), _event(2, "TIMER_FIRED"), _event(3, "WORKFLOW_TASK_SCHEDULED", attempt=1)
    )
    ours = _normal(_event(1, "TIMER_STARTED"), _event(2, "WORKFLOW_TASK_SCHEDULED", attempt=2))

    assert list(histories("p/run 1", theirs, ours)) == [
        Difference("p/run 1/events behind TimerStarted 1", ["TimerFired"], None),
        Difference("p/run 1/WorkflowTaskScheduled 1/attempt", 1, 2),
    ]


def test_differences_are_the_smallest_parts_and_are_read_by_people() -> None:
    [difference] = values("result", {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})

    assert str(difference) == "result/a/1/b\n    Temporal: 2\n    Stepwell: 3"
    assert list(values("result", [1], [1, 2])) == [Difference("result", [1], [1, 2])]
    assert list(chains("p", [[], []], [[]])) == [Difference("p/runs", 2, 1)]


def test_differences_of_one_cause_are_of_one_kind_and_an_explanation_is_by_path() -> None:
    one = Difference("child3/run 1/ActivityTaskStarted 12/workerVersion", {"buildId": "x"}, None)
    other = Difference("program/run 2/ActivityTaskStarted 3/workerVersion", {"buildId": "x"}, None)

    assert explained(one, {"*/ActivityTaskStarted */workerVersion": "why"}) == "why"
    assert explained(one, {"*/ActivityTaskStarted */identity": "why"}) is None
    assert one.kind == other.kind == "ActivityTaskStarted #/workerVersion"


def test_an_explanation_can_be_of_certain_values_alone() -> None:
    missing = Difference("described/program/0/pendingChildren", 2, None)
    for pattern in ("described/*/pendingChildren: * | (nothing)", "described/*/pendingChildren: 2 | *"):
        assert explained(missing, {pattern: "why"}) == "why"
    assert explained(missing, {"described/*/pendingChildren: (nothing) | *": "why"}) is None


@pytest.mark.parametrize("seed", [0, 7, 123456])
def test_a_seed_is_a_program_made_of_json_and_names_are_its_own(seed: int) -> None:
    program = generate(seed)
    names: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            names.extend([value["name"]] if "op" in value and "name" in value else [])
            for part in value.values():
                collect(part)
        elif isinstance(value, list):
            for part in value:
                collect(part)

    collect(program)
    assert program == generate(seed) == json.loads(json.dumps(program))
    assert len({name for name in names if name != "hello"}) == len([name for name in names if name != "hello"])
    assert set(children(program)) <= set(names)


def test_programs_have_each_operation() -> None:
    seen: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            seen.update([value["op"]] if "op" in value else [])
            for part in value.values():
                collect(part)
        elif isinstance(value, list):
            for part in value:
                collect(part)

    for seed in range(200):
        collect(generate(seed))
    assert {
        "activity",
        "timer",
        "signal",
        "update",
        "query",
        "child",
        "parallel",
        "continue_as_new",
        "await_cancel",
    } <= seen
    assert {"orphan", "patch", "attributes", "memo", "slow", "unattended", "failing_task", "await_termination"} <= seen
