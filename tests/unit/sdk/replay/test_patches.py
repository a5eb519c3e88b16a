"""Patch markers: one answer per patch and run, the same live and in replay (VE-01, VE-02, WC-12)."""

from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)


async def call(name: str) -> Any:
    return await workflow.execute_activity(name, start_to_close_timeout=SHORT)


@workflow.defn(name="rounds")
async def before() -> None:
    for _ in range(4):
        await call("A")


@workflow.defn(name="rounds")
class After:
    def __init__(self) -> None:
        self.answers: list[bool] = []

    @workflow.query
    def asked(self) -> list[bool]:
        return [*self.answers, workflow.patched("p"), workflow.patched("unasked")]

    @workflow.signal
    def ask(self) -> None:
        self.answers.append(workflow.patched("p"))

    @workflow.run
    async def run(self) -> None:
        for _ in range(4):
            self.answers.append(workflow.patched("p"))
            assert workflow.patched("p") == self.answers[-1]
            await call("B" if workflow.patched("p") else "A")


@workflow.defn(name="rounds")
async def deprecated() -> None:
    workflow.deprecate_patch("p")
    for _ in range(4):
        await call("B")


@workflow.defn(name="rounds")
async def removed() -> None:
    for _ in range(4):
        await call("B")


def query(d: Driver) -> Any:
    payload = d.run.query("asked")
    return d.definition.queries["asked"].signature.decode_result(d.run._runtime.payload_converter, payload)


@pytest.mark.parametrize("cache", [True, False])
def test_a_new_run_takes_the_new_path_with_one_marker(cache: bool) -> None:
    d = Driver(After, cache=cache)
    d.history.signal("ask")
    d.task()
    assert d.kinds() == ["RecordMarker", "UpsertWorkflowSearchAttributes", "ScheduleActivityTask"]
    for number in (1, 2, 3):
        d.history.activity_completed(str(number), None)
        d.task()
        assert d.kinds() == ["ScheduleActivityTask"]
    assert query(d) == [True] * 5 + [True, False], "a query is told false where the run has not asked"
    d.history.activity_completed("4", None)
    d.task()
    d.replay()


def test_an_old_run_stays_on_the_old_path() -> None:
    d = Driver(before)
    d.task()
    d.history.activity_completed("1", None)
    d.task()
    d.definition = workflow.definition.WorkflowDefinition.must_of(After)
    d.cache = False
    for number in (2, 3):
        d.history.activity_completed(str(number), None)
        d.history.signal("ask")
        d.task()
        assert d.result.commands[0].activity_type == "A"  # type: ignore[union-attr]
        assert query(d)[-2] is False
    d.replay()


def test_deprecate_then_remove() -> None:
    d = Driver(After)
    d.task()
    d.replay(deprecated)
    with pytest.raises(WorkflowTaskError, match=r'recorded MarkerRecorded .*patch "p".*asked for ScheduleActivityTask'):
        d.replay(removed)
    d = Driver(deprecated)
    d.task()
    assert d.kinds() == ["RecordMarker", "UpsertWorkflowSearchAttributes", "ScheduleActivityTask"]
    d.replay(removed)
    d.replay(After)


def test_deprecate_on_a_run_without_the_marker_asks_for_nothing() -> None:
    @workflow.defn(name="rounds")
    async def deprecated_a() -> None:
        workflow.deprecate_patch("p")
        for _ in range(4):
            await call("A")

    d = Driver(before)
    d.task()
    d.replay(deprecated_a)


@pytest.mark.parametrize("call_of", ["patched", "deprecate_patch", "version"])
def test_an_id_that_is_no_text_is_refused(call_of: str) -> None:
    """Its marker would not be found again by any replay."""

    @workflow.defn(name="rounds")
    async def numbered() -> None:
        getattr(workflow, call_of)(5, *((1, 1) if call_of == "version" else ()))

    with pytest.raises(WorkflowTaskError, match=f"workflow.{call_of}: the id of a change must be text, not int"):
        Driver(numbered).task()
