from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.requests import ActivityTask

from stepwell_server.temporal_gateway.handlers.activities import to_activity_task
from tests.temporal.polyglot import go, java, typescript
from tests.temporal.polyglot.outcomes import read, record, section
from tests.temporal.polyglot.steps import STEPS, Step, complete
from tests.temporal.polyglot.toolchain import Unavailable

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_step_that_the_script_did_not_tell_of_has_failed() -> None:
    output = b'a line of a log\n{"step":"activity","passed":true,"reason":""}\n'
    steps = complete(output, "the script ended with exit code 1")
    assert [step.step for step in steps] == list(STEPS)
    assert [step.passed for step in steps] == [True] + [False] * (len(STEPS) - 1)
    assert steps[1].reason == "nothing was told of it; the script ended with exit code 1"


@pytest.mark.parametrize("build", [typescript.build, go.build, java.build])
def test_without_its_tools_a_language_is_not_tested(
    build: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"the command `\w+` is not there"):
        build(tmp_path / "built")


def test_the_section_tells_what_failed_against_stepwell(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    record("mixed", "temporal", [Step("result", True), Step("failure", True)], path)
    record("mixed", "stepwell", [Step("result", True), Step("failure", False, "lost its type")], path)
    text = section(read(path))
    assert "| mixed | result, failure | 1 of 2 | 2 of 2 |" in text
    assert "- `mixed`, failure: lost its type" in text


def test_an_activity_task_has_limits_of_zero_where_none_are_set() -> None:
    """The TypeScript SDK refuses a task in which one of the two is left out."""
    task = ActivityTask(
        task_token=b"token",
        execution=WorkflowExecution(workflow_id="w", run_id="r"),
        workflow_type="w",
        activity_id="1",
        activity_type="a",
        task_queue="q",
        scheduled_time=NOW,
        current_attempt_scheduled_time=NOW,
        started_time=NOW,
        start_to_close_timeout=timedelta(seconds=3),
        retry_policy=RetryPolicy(),
    )
    told = to_activity_task("default", task)
    assert told.HasField("schedule_to_close_timeout")
    assert told.schedule_to_close_timeout.ToTimedelta() == timedelta()
    assert told.start_to_close_timeout.ToTimedelta() == timedelta(seconds=3)
