"""Local activities: their ends in the turn's order, the same in replay; what is pending stays so (AC-24)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.commands import RecordMarker, RejectUpdate, StartTimer
from stepwell.api.enums import CompletionOutcome, RetryState
from stepwell.api.requests import RespondWorkflowTaskCompletedResponse
from stepwell.exceptions import ActivityError, ApplicationError
from stepwell.replay.errors import WorkflowTaskError
from stepwell.replay.machines.local_activity import LocalActivityEnd, LocalActivityStop
from stepwell.replay.run import TaskResult
from stepwell.workflow import ActivityCancellationType

from tests.support.histories import START, Driver, failure, payloads

LONG = timedelta(seconds=30)


def ends(activity_id: str, *result: Any, seconds: float = 1, **fields: Any) -> LocalActivityEnd:
    values = {"attempt": 1, "result": payloads(*result), **fields}
    return LocalActivityEnd(activity_id, time=START + timedelta(seconds=seconds), **values)


class LocalDriver(Driver):
    """Feeds ends as a worker does: between the turns of one workflow task."""

    def task(self, *ended: LocalActivityEnd) -> TaskResult:
        if not self.cache:
            self.run.evict()
            self.run = self.new_run()
        started = self.history.task_started()
        self.result = self.run.run_task(self.history.events)
        self.called = [call.activity_id for call in self.run.local.take_calls()]
        for end in ended:
            self.result = self.run.run_local(end)
            self.called += [call.activity_id for call in self.run.local.take_calls()]
        self.history.task_completed(self.result)
        self._accept(started, fusible=True)
        return self.result

    @property
    def markers(self) -> int:
        return sum(type(command) is RecordMarker for command in self.result.commands)


@pytest.fixture(params=[True, False], ids=["cached", "replayed"])
def cache(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def call(name: str, **options: Any) -> Any:
    return workflow.start_local_activity(name, start_to_close_timeout=LONG, **options)


@workflow.defn
async def race() -> list[Any]:
    """Says in which order two local activities ended, and at what time."""
    found: list[Any] = []

    async def one(name: str) -> None:
        found.append([await call(name), workflow.now().second])

    await asyncio.gather(one("a"), one("b"))
    await workflow.execute_activity("after", found, start_to_close_timeout=LONG)
    return found


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
def test_ends_come_in_the_order_that_is_recorded(cache: bool, order: tuple[str, str]) -> None:
    d = LocalDriver(race, cache=cache)
    first, second = order
    d.task(ends(first, first, seconds=5), ends(second, second, seconds=7))
    assert d.called == ["1", "2"]
    assert d.kinds() == ["RecordMarker", "RecordMarker", "ScheduleActivityTask"]
    d.history.activity_completed("after", None)
    d.task()
    assert d.value() == [[first, 5], [second, 7]]
    d.replay()


def test_time_never_goes_back(cache: bool) -> None:
    d = LocalDriver(race, cache=cache)
    d.task(ends("1", "a", seconds=9), ends("2", "b", seconds=4))
    d.history.activity_completed("after", None)
    d.task()
    assert d.value() == [["a", 9], ["b", 9]]


@workflow.defn
class Kept:
    """Is told things while its local activity runs."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.signal
    def hear(self, what: str) -> None:
        self.heard.append(what)

    @workflow.run
    async def run(self) -> list[str]:
        result = await call("slow")
        self.heard.append(result)
        return self.heard


@workflow.defn
class Strict:
    """Rejects every update while its local activity runs."""

    @workflow.update
    async def add(self) -> None:
        raise AssertionError("was rejected")

    @add.validator
    def check_add(self) -> None:
        raise ApplicationError("not now")

    @workflow.run
    async def run(self) -> None:
        await call("slow")
        await call("slower")
        await workflow.wait_condition(lambda: False)


def test_a_rejection_is_in_every_result_of_its_task() -> None:
    d = LocalDriver(Strict)
    d.update("u", "add")
    d.history.task_started()
    results = [d.run.run_task(d.history.events, d.shown), d.run.run_local(ends("1")), d.run.run_local(ends("2"))]
    rejected = [[c.update_id for c in result.commands if isinstance(c, RejectUpdate)] for result in results]
    assert rejected == [["u"]] * 3
    assert len(results[-1].commands) == 3
    d.run.accepted(RespondWorkflowTaskCompletedResponse(outcome=CompletionOutcome.ACCEPTED, started_event_id=3))
    assert d.run._runtime.updates.rejections == []


def test_what_is_pending_at_the_end_of_a_task_stays_pending(cache: bool) -> None:
    d = LocalDriver(Kept, cache=cache)
    d.task()
    assert d.called == ["1"] and d.kinds() == []
    d.history.signal("hear", "one")
    d.task()
    # a worker that replays has to run it again, one that kept the run has it running
    assert d.called == ([] if cache else ["1"]) and d.kinds() == []
    d.history.signal("hear", "two")
    d.task(ends("1", "slow"))
    assert d.value() == ["one", "two", "slow"]
    d.replay()


@workflow.defn
async def persists() -> str:
    try:
        return str(await call("flaky", local_retry_threshold=timedelta(seconds=2)))
    except ActivityError as error:
        return f"{error.cause} {error.retry_state} {error.activity_type} {error.activity_id}"


def test_the_next_attempt_behind_a_timer(cache: bool) -> None:
    d = LocalDriver(persists, cache=cache)
    broken = failure(ApplicationError("once", type="Once"))
    d.task(ends("1", attempt=3, failure=broken, backoff=timedelta(seconds=90), result=()))
    assert d.kinds() == ["RecordMarker", "StartTimer"]
    timer = d.result.commands[1]
    assert isinstance(timer, StartTimer) and timer.start_to_fire_timeout == timedelta(seconds=90)
    d.history.pass_time(90)
    d.history.timer_fired()
    started = d.history.task_started()
    if not cache:
        d.run.evict()
        d.run = d.new_run()
    d.run.run_task(d.history.events)
    (again,) = d.run.local.take_calls()
    assert again.attempt == 4 and again.last_failure == broken and again.scheduled_time == START
    d.result = d.run.run_local(ends("1", "fine", attempt=4, seconds=91))
    d.history.task_completed(d.result)
    d._accept(started, fusible=True)
    assert d.value() == "fine"
    d.replay()


def test_failures_are_those_of_any_activity(cache: bool) -> None:
    d = LocalDriver(persists, cache=cache)
    broken = failure(ApplicationError("never", type="Never"))
    d.task(ends("1", failure=broken, retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED, result=()))
    assert d.value() == "Never: never MAXIMUM_ATTEMPTS_REACHED flaky 1"
    d.replay()


@workflow.defn
class Cancels:
    def __init__(self) -> None:
        self.stop = False

    @workflow.signal
    def enough(self) -> None:
        self.stop = True

    @workflow.run
    async def run(self, kind: int) -> list[Any]:
        never = call("never begun")
        never.cancel()
        handle = call("slow", cancellation_type=ActivityCancellationType(kind))
        await workflow.wait_condition(lambda: self.stop)
        told = handle.cancel()
        try:
            return [told, await handle]
        except asyncio.CancelledError:
            return [told, "canceled"]


@pytest.mark.parametrize("kind", [ActivityCancellationType.TRY_CANCEL, ActivityCancellationType.ABANDON])
def test_cancelled_without_waiting(cache: bool, kind: ActivityCancellationType) -> None:
    d = LocalDriver(Cancels, kind.value, cache=cache)
    d.task()
    assert d.called == ["2"]
    d.history.signal("enough")
    d.task(ends("2", "too late"))
    assert d.value() == [True, "canceled"] and d.markers == 1
    assert d.run.local.take_stops() == [
        LocalActivityStop("2", interrupt=kind is ActivityCancellationType.TRY_CANCEL, awaited=False)
    ]
    d.replay()


@pytest.mark.parametrize("canceled", [True, False])
def test_cancelled_and_waited_for(cache: bool, canceled: bool) -> None:
    d = LocalDriver(Cancels, ActivityCancellationType.WAIT_CANCELLATION_COMPLETED.value, cache=cache)
    d.task()
    d.history.signal("enough")
    d.task(ends("2", canceled=True) if canceled else ends("2", "all the same"))
    assert d.value() == [False, "canceled" if canceled else "all the same"] and d.markers == 1
    assert d.run.local.take_stops() == [LocalActivityStop("2", interrupt=True, awaited=True)]
    d.replay()


@workflow.defn
async def cancelled_before_the_timer() -> str:
    handle = call("flaky")
    try:
        return str(await asyncio.wait_for(handle, 10))
    except TimeoutError:
        return "given up"


def test_cancelled_while_it_waits_for_its_next_attempt(cache: bool) -> None:
    d = LocalDriver(cancelled_before_the_timer, cache=cache)
    broken = failure(ApplicationError("once", type="Once"))
    d.task(ends("1", failure=broken, backoff=timedelta(seconds=90), result=()))
    assert d.kinds() == ["StartTimer", "RecordMarker", "StartTimer"]
    d.history.pass_time(10)
    d.history.timer_fired("1")
    d.task()
    assert d.value() == "given up"
    assert d.kinds() == ["CancelTimer", "RecordMarker", "CompleteWorkflowExecution"]
    d.replay()


def changed(*names: str) -> Any:
    @workflow.defn(name="race")
    async def other() -> None:
        for name in names:
            await call(name)

    return other


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (changed(), "CompleteWorkflowExecution"),
        (changed("other"), "nothing more in this workflow task"),
    ],
)
def test_changed_code_is_told_of(code: Any, names: str) -> None:
    d = LocalDriver(race)
    d.task(ends("1", "a"), ends("2", "b"))
    with pytest.raises(WorkflowTaskError) as raised:
        d.replay(code)
    message = raised.value.failure.message
    assert "local activity" in message and names in message, message


@workflow.defn
async def misuses(how: str) -> None:
    if how == "same id":
        call("a", activity_id="x")
        await call("b", activity_id="x")
    elif how == "no timeout":
        await workflow.execute_local_activity("a")
    elif how == "threshold":
        await call("a", local_retry_threshold=timedelta(seconds=-1))
    elif how == "summary":
        await call("a", summary="é" * 201)
    elif how == "option":
        await workflow.execute_local_activity("a", heartbeat_timeout=LONG)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("same id", "'x' is that of one which has not ended"),
        ("no timeout", "needs start_to_close_timeout"),
        ("threshold", "local_retry_threshold must not be negative"),
        ("summary", "has 402 bytes, the limit is 400"),
        ("option", "execute_local_activity() has no option 'heartbeat_timeout'"),
    ],
)
def test_bad_input_fails_the_task(how: str, said: str) -> None:
    d = LocalDriver(misuses, how)
    with pytest.raises(WorkflowTaskError) as raised:
        d.task()
    assert said in raised.value.failure.message
