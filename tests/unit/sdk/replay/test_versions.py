"""``workflow.version``, and patches that are deployed before they are used (VE-03, VE-04)."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.codec import decode_json
from stepwell.api.commands import RecordMarker, UpsertWorkflowSearchAttributes
from stepwell.api.common import SdkMetadata
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.replay.changes import PatchActivationInput
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver, WorkflowDefinition

SHORT = timedelta(seconds=10)
OLD = workflow.DEFAULT_VERSION


async def call(name: str) -> None:
    await workflow.execute_activity(name, start_to_close_timeout=SHORT)


@workflow.defn(name="rounds")
async def before() -> None:
    for _ in range(3):
        await call("A-1")


def code(minimum: int, maximum: int, new_runs: int | None = None) -> Any:
    """A release of the workflow: each round asks for the version and does what it says."""

    @workflow.defn(name="rounds")
    class Release:
        @workflow.query
        def asked(self) -> list[int]:
            return [workflow.version("p", minimum, maximum, new_runs=new_runs), workflow.version("unasked", 5, 6)]

        @workflow.run
        async def run(self) -> None:
            for _ in range(3):
                number = workflow.version("p", minimum, maximum, new_runs=new_runs)
                assert workflow.version("p", minimum, maximum) == number, "the first answer holds"
                await call(f"A{number}")

    return Release


@workflow.defn(name="rounds")
class Patched:
    @workflow.run
    async def run(self) -> None:
        for _ in range(3):
            await call("A1" if workflow.patched("p") else "A-1")


def removed(name: str) -> Callable[[], Any]:
    @workflow.defn(name="rounds")
    async def without_the_call() -> None:
        for _ in range(3):
            await call(name)

    return without_the_call


def recorded(workflow_code: Any, *later: Any, cache: bool = True) -> Driver:
    """A run whose first task is done by one release, and whose next tasks by later ones."""
    d = Driver(workflow_code, cache=cache)
    d.task()
    for number, release in enumerate(later, start=1):
        deploy(d, release)
        d.history.activity_completed(str(number), None)
        d.task()
    return d


def deploy(d: Driver, release: Any) -> None:
    d.definition = WorkflowDefinition.must_of(release)
    d.cache = False


def called(d: Driver) -> str:
    return str(d.result.commands[-1].activity_type)  # type: ignore[union-attr]


def asked(d: Driver) -> Any:
    signature = d.definition.queries["asked"].signature
    return signature.decode_result(d.run._runtime.payload_converter, d.run.query("asked"))


@pytest.mark.parametrize("cache", [True, False])
def test_a_new_run_takes_the_newest_version_with_one_marker(cache: bool) -> None:
    d = Driver(code(OLD, 2), cache=cache)
    d.task()
    assert d.kinds() == ["RecordMarker", "UpsertWorkflowSearchAttributes", "ScheduleActivityTask"]
    marker = d.result.commands[0]
    assert isinstance(marker, RecordMarker) and marker.marker_name == "version"
    assert {key: value.data for key, value in marker.details.items()} == {
        "change_id": b'"p"',
        "version": b"2",
        "deprecated": b"false",
    }
    for number in (1, 2):
        d.history.activity_completed(str(number), None)
        d.task()
        assert d.kinds() == ["ScheduleActivityTask"] and called(d) == "A2"
    assert asked(d) == [2, OLD], "a query is told the default where the run has not asked"
    d.replay()


def test_a_run_keeps_its_number_over_later_releases() -> None:
    d = recorded(code(OLD, 1), code(OLD, 2), code(1, 3))
    assert called(d) == "A1" and asked(d)[0] == 1
    d = recorded(before, code(OLD, 2), code(OLD, 3))
    assert called(d) == "A-1" and asked(d)[0] == OLD
    assert not [event for event in d.history.events if event.event_type == "MarkerRecorded"]


@pytest.mark.parametrize(
    ("first", "low", "high", "message"),
    [
        (code(OLD, 1), 2, 3, "on version 1 of change 'p', but the workflow code supports 2 to 3; keep the path"),
        (before, 1, 2, "on version -1 of change 'p', but the workflow code supports 1 to 2; keep the path of"),
        (code(OLD, 3), OLD, 2, "on version 3 .* supports -1 to 2; deploy code that knows version 3"),
    ],
)
def test_a_version_that_is_not_supported_fails_the_task_whatever_the_code_catches(
    first: Any, low: int, high: int, message: str
) -> None:
    d = recorded(first)
    with pytest.raises(WorkflowTaskError, match=message) as caught:
        d.replay(code(low, high))
    assert caught.value.failed_cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR

    @workflow.defn(name="rounds")
    async def catches() -> None:
        try:
            workflow.version("p", low, high)
        except Exception:
            await call("instead")

    with pytest.raises(WorkflowTaskError, match=message):
        d.replay(catches)


def test_a_path_is_deployed_before_it_is_used_and_rolled_back_without_harm() -> None:
    knows, uses = code(OLD, 1, new_runs=OLD), code(OLD, 1)
    d = recorded(knows, uses, knows)
    assert called(d) == "A-1", "begun before the path was used"
    d = recorded(uses, knows, uses)
    assert called(d) == "A1", "begun on the path, which the earlier release knows"
    d.replay(knows)


def test_a_patch_goes_on_as_a_version_and_back() -> None:
    assert called(recorded(Patched, code(OLD, 2))) == "A1"
    assert called(recorded(code(OLD, 1), Patched)) == "A1"
    assert called(recorded(before, Patched, code(OLD, 2))) == "A-1"


def test_the_call_goes_when_only_one_version_was_left() -> None:
    d = recorded(code(OLD, 2))
    d.replay(code(2, 2))
    with pytest.raises(WorkflowTaskError, match=r'recorded MarkerRecorded \(version 2 of "p"\).*asked for Schedule'):
        d.replay(removed("A2"))
    recorded(code(2, 2)).replay(removed("A2"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", OLD, 1), "change_id must not be empty"),
        (("p", 2, 1), "min_supported 2 and max_supported 1"),
        (("p", -2, 1), r"from DEFAULT_VERSION \(-1\)"),
        (("p", 1, 2, 3), "new_runs 3, which is not from min_supported 1 to max_supported 2"),
    ],
)
def test_what_is_no_range_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    @workflow.defn
    async def wrong() -> None:
        change, low, high, *rest = arguments
        workflow.version(change, low, high, new_runs=rest[0] if rest else None)

    with pytest.raises(WorkflowTaskError, match=message):
        Driver(wrong).task()


# --- the worker's callback ------------------------------------------------------------------------------------------


class ActivatedDriver(Driver):
    """A driver whose worker decides on patches."""

    def __init__(self, *args: Any, active: Callable[[PatchActivationInput], bool], **options: Any) -> None:
        self.active = active
        super().__init__(*args, **options)

    def new_run(self, workflow: Any = None) -> Any:
        run = super().new_run(workflow)
        run._runtime.changes.patch_activation = self.active
        return run


@pytest.mark.parametrize("cache", [True, False])
def test_the_worker_decides_once_per_run_when_a_patch_is_used(cache: bool) -> None:
    inputs: list[PatchActivationInput] = []
    answer = False

    def decide(given: PatchActivationInput) -> bool:
        inputs.append(given)
        os.environ.get("HOME")  # it may look around, unlike workflow code
        return answer

    old = ActivatedDriver(Patched, active=decide, cache=cache)
    old.task()
    assert called(old) == "A-1" and old.kinds() == ["ScheduleActivityTask"]
    answer = True
    old.history.activity_completed("1", None)
    old.task()
    assert called(old) == "A-1", "the first answer holds"

    new = ActivatedDriver(Patched, active=decide, cache=cache)
    new.task()
    answer = False
    new.history.activity_completed("1", None)
    new.task()
    assert called(new) == "A1", "and is recorded"
    new.replay()
    assert [(given.patch_id, given.workflow_info.workflow_id) for given in inputs] == [("p", "wf-1")] * 2


def searchable(d: Driver) -> list[str]:
    (command,) = [c for c in d.result.commands if isinstance(c, UpsertWorkflowSearchAttributes)]
    (payload,) = command.search_attributes.values()
    assert payload.metadata["type"] == "KeywordList"
    return decode_json(payload.data, list[str])


@workflow.defn(name="meets")
class Meets:
    @workflow.run
    async def run(self) -> Any:
        workflow.patched("a")
        workflow.version("b", 1, 3)
        await call("one")
        workflow.patched("c")
        await call("two")
        return [pair.value for pair in workflow.search_attributes()]


def test_the_changes_that_a_run_has_met_can_be_searched_for() -> None:
    """VE-05: one list, that grows behind each marker; it is there in replay too."""
    d = Driver(Meets, cache=False)
    d.task()
    assert d.kinds() == ["RecordMarker", "UpsertWorkflowSearchAttributes"] * 2 + ["ScheduleActivityTask"]
    d.history.activity_completed("1", None)
    d.task()
    assert searchable(d) == ["a", "b-3", "c"]
    d.history.activity_completed("2", None)
    d.task()
    assert d.value() == [["a", "b-3", "c"]]
    d.replay()


def test_a_history_from_before_has_no_such_attribute() -> None:
    """The logic flag is not in it."""
    d = Driver(code(1, 2))
    d.task()
    recorded = d.history.events
    (marker,) = [i for i, e in enumerate(recorded) if isinstance(e.attributes, ev.UpsertWorkflowSearchAttributes)]
    before = [replace(e, event_id=n) for n, e in enumerate((*recorded[:marker], *recorded[marker + 1 :]), 1)]
    completed = before[3]
    assert isinstance(completed.attributes, ev.WorkflowTaskCompleted)
    metadata = SdkMetadata(flags=(1,), sdk_name="stepwell-python")
    before[3] = replace(completed, attributes=replace(completed.attributes, sdk_metadata=metadata))
    d.new_run().run_task(before)


def test_a_list_that_is_too_long_is_not_made_longer() -> None:
    @workflow.defn
    async def many() -> None:
        for number in range(30):
            workflow.patched(f"{number:0100}")
        await call("one")

    d = Driver(many)
    d.task()
    assert d.kinds().count("RecordMarker") == 30
    assert d.kinds().count("UpsertWorkflowSearchAttributes") == 19
    d.replay()
