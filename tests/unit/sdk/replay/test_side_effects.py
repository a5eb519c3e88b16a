"""``workflow.side_effect``: run once, recorded, the same in replay."""

import os
from typing import Any

import pytest
from stepwell import workflow
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver

CALLS: list[str] = []


def from_outside(name: str) -> str:
    CALLS.append(name)
    assert os.environ["PATH"], "which the guards refuse to workflow code"
    return f"{name} {len(CALLS)}"


@workflow.defn(name="asks")
class Asks:
    @workflow.query
    def spoil(self) -> str:
        return workflow.side_effect(lambda: from_outside("query"))

    @workflow.run
    async def run(self) -> list[Any]:
        found = [workflow.side_effect(lambda: from_outside("a")), workflow.side_effect(lambda: from_outside("b"))]
        await workflow.sleep(1)
        pair = workflow.side_effect(lambda: (1, 2), result_type=tuple[int, int])
        return [*found, str(pair)]


@pytest.mark.parametrize("cache", [True, False])
def test_run_once_and_recorded(cache: bool) -> None:
    CALLS.clear()
    d = Driver(Asks, cache=cache)
    d.task()
    assert d.kinds() == ["RecordMarker", "RecordMarker", "StartTimer"]
    d.history.timer_fired()
    d.task()
    assert d.value() == ["a 1", "b 2", "(1, 2)"]
    d.replay()
    assert CALLS == ["a", "b"]


def test_a_query_cannot() -> None:
    d = Driver(Asks)
    d.task()
    with pytest.raises(Exception, match="recording a value is not possible in a query handler"):
        d.run.query("spoil")


@workflow.defn(name="asks")
async def once_more() -> None:
    for name in ("a", "b", "c"):
        workflow.side_effect(lambda name=name: from_outside(name))
    await workflow.sleep(1)


@workflow.defn(name="asks")
async def once() -> None:
    workflow.side_effect(lambda: from_outside("a"))
    await workflow.sleep(1)


@pytest.mark.parametrize(
    ("code", "says"), [(once_more, "side_effect number 3, which the history does not have"), (once, "side_effect")]
)
def test_changed_code_is_told_of(code: Any, says: str) -> None:
    d = Driver(Asks)
    d.task()
    CALLS.clear()
    with pytest.raises(WorkflowTaskError) as raised:
        d.replay(code)
    assert says in raised.value.failure.message and not CALLS


@workflow.defn
async def breaks() -> str:
    try:
        workflow.side_effect(lambda: 1 // 0)
    except ZeroDivisionError:
        return "went on"
    return "?"


def test_what_it_raises_fails_the_task() -> None:
    with pytest.raises(WorkflowTaskError) as raised:
        Driver(breaks).task()
    assert "division" in raised.value.failure.message
