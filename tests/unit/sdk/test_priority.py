"""``common.Priority``: what it takes, what travels, and where workflow code and workers refuse something else."""

from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api import common as wire
from stepwell.client import Client
from stepwell.common import Priority
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


def test_what_is_given_travels_and_the_rest_is_left_open() -> None:
    assert Priority.default == Priority() and Priority.default.to_record() is None
    full = Priority(priority_key=1, fairness_key="tenant", fairness_weight=2)
    assert full.to_record() == wire.Priority(priority_key=1, fairness_key="tenant", fairness_weight=2.0)
    for priority in (full, Priority(priority_key=5), Priority(fairness_key="k"), Priority.default):
        assert Priority.from_record(priority.to_record()) == priority


@pytest.mark.parametrize(
    ("parent", "own", "wanted"),
    [
        (None, None, None),
        (wire.Priority(priority_key=2), None, wire.Priority(priority_key=2)),
        (None, wire.Priority(priority_key=2), wire.Priority(priority_key=2)),
        (
            wire.Priority(priority_key=2, fairness_key="a", fairness_weight=3.0),
            wire.Priority(priority_key=1),
            wire.Priority(priority_key=1, fairness_key="a", fairness_weight=3.0),
        ),
        (
            wire.Priority(priority_key=2),
            wire.Priority(fairness_key="b", fairness_weight=4.0),
            wire.Priority(priority_key=2, fairness_key="b", fairness_weight=4.0),
        ),
    ],
)
def test_inherited(parent: wire.Priority | None, own: wire.Priority | None, wanted: wire.Priority | None) -> None:
    assert wire.inherited(parent, own) == wanted


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"priority_key": 0}, ValueError, "must be 1 .first. to 5 .last., not 0"),
        ({"priority_key": 6}, ValueError, "not 6"),
        ({"priority_key": 1.5}, TypeError, "priority_key cannot be of type float"),
        ({"priority_key": True}, TypeError, "priority_key cannot be of type bool"),
        ({"fairness_key": "x" * 65}, ValueError, "has 65 bytes, the limit is 64"),
        ({"fairness_key": 7}, TypeError, "fairness_key cannot be of type int"),
        ({"fairness_weight": 0}, ValueError, "must be 0.001 to 1000, not 0"),
        ({"fairness_weight": 1000.1}, ValueError, "must be 0.001 to 1000"),
        ({"fairness_weight": float("nan")}, ValueError, "must be 0.001 to 1000"),
        ({"fairness_weight": "2"}, TypeError, "fairness_weight cannot be of type str"),
    ],
)
def test_bad_values(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Priority(**fields)


def test_the_edges_pass() -> None:
    for key in (1, 5):
        Priority(priority_key=key, fairness_key="x" * 64, fairness_weight=0.001)
    Priority(fairness_weight=1000)


@activity.defn
async def act() -> None: ...


@workflow.defn
async def refused() -> list[str]:
    bad: Any = 3
    said = []
    for attempt in (
        lambda: workflow.execute_activity(act, start_to_close_timeout=timedelta(seconds=5), priority=bad),
        lambda: workflow.start_child_workflow("any", priority=bad),
    ):
        try:
            await attempt()
        except TypeError as error:
            said.append(str(error))
    return said


async def test_something_else_is_refused_at_the_call() -> None:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[refused], activities=[act]):
            said = await env.client.execute_workflow(refused, id="r", task_queue="q")
        bad: Any = 3
        with pytest.raises(TypeError, match="priority must be a Priority, not int"):
            await env.client.start_workflow(refused, id="s", task_queue="q", priority=bad)
    assert [text.split(": ")[1] for text in said] == ["priority must be a Priority, not int"] * 2


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf"), 1_000_001])
async def test_a_worker_with_a_bad_rate(rate: float) -> None:
    async with await Client.connect("sqlite://:memory:") as client:
        with pytest.raises(ValueError, match="max_task_queue_activities_per_second must be above 0 and at most 1e"):
            Worker(client, task_queue="q", activities=[act], max_task_queue_activities_per_second=rate)
