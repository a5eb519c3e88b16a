"""Updates in workflow code: validators, handlers, order, and the same again in replay (MS-25, MS-26, PM-22)."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.commands import CompleteUpdate, RejectUpdate
from stepwell.api.failures import ApplicationFailureInfo
from stepwell.api.updates import DeliveredUpdate
from stepwell.common import RawValue
from stepwell.exceptions import ApplicationError
from stepwell.replay.errors import WorkflowTaskError
from stepwell.workflow import HandlerUnfinishedPolicy
from stepwell.workflow.interceptors import HandleUpdateInput, WorkflowInboundInterceptor

from tests.support.histories import CONVERTER, Driver


@workflow.defn
class Basket:
    def __init__(self) -> None:
        self.items: list[str] = []
        self.closed = False
        self.validated = 0

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.closed)
        return self.items

    @workflow.update
    def add(self, item: str) -> int:
        self.items.append(item)
        workflow.logger.warning("added")
        return len(self.items)

    @add.validator
    def check(self, item: str) -> None:
        self.validated += 1
        if not item:
            raise ApplicationError("an item has a name", type="Nameless")

    @workflow.update(name="slow", description="takes its time")
    async def add_later(self, item: str) -> str:
        await workflow.sleep(1)
        self.items.append(item)
        info = workflow.current_update_info()
        assert info is not None
        return f"{info.name}/{info.id}"

    @workflow.update
    async def fail(self, how: str) -> None:
        await workflow.sleep(0)
        if how == "failure":
            raise ApplicationError("no")
        if how == "cancelled":
            raise asyncio.CancelledError
        raise KeyError(how)

    @workflow.update
    async def random_validator(self) -> None: ...

    @random_validator.validator
    def take_a_number(self) -> None:
        workflow.random().random()

    @workflow.update
    async def waiting_validator(self) -> None: ...

    @waiting_validator.validator
    def start_something(self) -> None:
        workflow.start_activity("act", start_to_close_timeout=timedelta(seconds=1))

    @workflow.signal
    def put(self, item: str) -> None:
        self.items.append(item)

    @workflow.signal
    def close(self) -> None:
        self.closed = True


def started(**options: Any) -> Driver:
    driver = Driver(Basket, **options)
    driver.task()
    return driver


def outcomes(driver: Driver) -> dict[str, Any]:
    """Of the last task."""
    found: dict[str, Any] = {}
    for command in driver.result.commands:
        if isinstance(command, CompleteUpdate):
            outcome = command.outcome
            found[command.update_id] = (
                CONVERTER.payload_converter.from_payloads(outcome.success)[0]
                if outcome.failure is None
                else outcome.failure
            )
    return found


@pytest.mark.parametrize("cache", [True, False])
def test_accepted_and_completed(cache: bool) -> None:
    driver = started(cache=cache)
    driver.update("u", "add", "bread")
    driver.task()
    assert driver.kinds() == ["AcceptUpdate", "CompleteUpdate"]
    assert outcomes(driver) == {"u": 1}
    driver.update("v", "slow", "milk")
    driver.task()
    assert driver.kinds() == ["AcceptUpdate", "StartTimer"]
    driver.history.timer_fired()
    driver.task()
    assert outcomes(driver) == {"v": "slow/v"}
    driver.history.signal("close")
    driver.task()
    assert driver.value() == ["bread", "milk"]
    driver.replay()


def test_validators_do_not_run_in_replay() -> None:
    driver = started()
    driver.update("u", "add", "bread")
    driver.task()
    run = driver.replay()
    assert run._runtime.handlers.instance.validated == 0
    assert run._runtime.handlers.instance.items == ["bread"]


def test_a_rejected_one_is_known_to_nobody() -> None:
    driver = started()
    before = driver.run.last_event_id, driver.run._runtime.now
    driver.history.pass_time(5)
    driver.update("u", "add", "")
    result = driver.dropped_task()
    (rejection,) = result.commands
    assert isinstance(rejection, RejectUpdate) and rejection.failure.message == "an item has a name"
    assert (driver.run.last_event_id, driver.run._runtime.now) == before
    driver.update("v", "add", "bread")
    driver.task()
    assert outcomes(driver) == {"v": 1}
    driver.replay()


def test_rejected_beside_others_makes_no_event() -> None:
    driver = started()
    driver.update("u", "add", "")
    driver.update("v", "add", "bread")
    driver.task()
    assert driver.kinds() == ["RejectUpdate", "AcceptUpdate", "CompleteUpdate"]
    driver.update("w", "add", "milk")
    driver.task()
    assert outcomes(driver) == {"w": 2}
    driver.replay()


@pytest.mark.parametrize(
    ("args", "message"),
    [((7,), "update 'add'"), ((), "takes 1 argument"), (("a", "b"), "takes 1 argument")],
)
def test_arguments_that_do_not_fit_are_refused_to_the_sender(args: Sequence[Any], message: str) -> None:
    driver = started()
    driver.update("u", "add", *args)
    (rejection,) = driver.dropped_task().commands
    assert isinstance(rejection, RejectUpdate) and message in rejection.failure.message


def test_an_unknown_one_is_rejected_at_the_end_of_its_task() -> None:
    driver = started()
    driver.update("u", "ad", "bread")
    (rejection,) = driver.dropped_task().commands
    assert isinstance(rejection, RejectUpdate)
    assert "no handler for update 'ad'; it has: add, fail, random_validator, slow" in rejection.failure.message


def test_failures_are_outcomes_and_bugs_fail_the_task() -> None:
    driver = started()
    driver.update("u", "fail", "failure")
    driver.update("v", "fail", "cancelled")
    driver.task()
    found = outcomes(driver)
    assert found["u"].message == "no" and isinstance(found["u"].info, ApplicationFailureInfo)
    assert type(found["v"].info).__name__ == "CanceledFailureInfo"
    driver.replay()
    driver.update("w", "fail", "bug")
    with pytest.raises(WorkflowTaskError, match="bug"):
        driver.task()


@pytest.mark.parametrize(
    ("name", "what"), [("random_validator", "randomness"), ("waiting_validator", "calling an activity")]
)
def test_a_validator_that_does_more_than_read_fails_the_task(name: str, what: str) -> None:
    driver = started()
    driver.update("u", name)
    with pytest.raises(WorkflowTaskError, match=f"{what} is not possible in the validator of an update"):
        driver.task()


@pytest.mark.parametrize("cache", [True, False])
def test_messages_are_handled_in_the_order_in_which_they_came(cache: bool) -> None:
    driver = started(cache=cache)
    driver.update("u", "add", "1")
    driver.history.signal("put", "2")
    driver.update("v", "add", "3")
    driver.history.signal("put", "4")
    driver.history.signal("close")
    driver.task()
    assert driver.value() == ["1", "2", "3", "4"]
    assert outcomes(driver) == {"u": 1, "v": 3}
    driver.replay()


def test_one_that_is_no_longer_handled_is_a_mismatch() -> None:
    driver = started()
    driver.update("u", "add", "bread")
    driver.task()

    @workflow.defn(name="Basket")
    class Without:
        @workflow.run
        async def run(self) -> None:
            await workflow.wait_condition(lambda: False)

    with pytest.raises(WorkflowTaskError, match=r"recorded WorkflowExecutionUpdateAccepted \(update_id 'u'\)"):
        driver.replay(Without)


def test_unfinished_ones_are_told_about(caplog: pytest.LogCaptureFixture) -> None:
    driver = started()
    driver.update("u", "slow", "milk")
    driver.task()
    driver.history.signal("close")
    driver.task()
    assert driver.kinds() == ["CompleteWorkflowExecution"]
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "while these update handlers were running: slow" in record.getMessage()
    assert "wf-1" in record.getMessage()


@workflow.defn
class AtRunTime:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        workflow.set_update_handler("greet", self.greet, validator=self.check)
        assert workflow.get_update_handler("greet") == self.greet
        workflow.set_dynamic_update_handler(self.any)
        await workflow.wait_condition(lambda: "end" in self.seen)
        workflow.set_update_handler("greet", None)
        workflow.set_dynamic_update_handler(None)
        assert workflow.get_update_handler("greet") is workflow.get_dynamic_update_handler() is None
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.seen

    def greet(self, name: str) -> str:
        assert workflow.current_update_info() == workflow.UpdateInfo(id="u", name="greet")
        self.seen.append(name)
        return f"hello {name}"

    def check(self, name: str) -> None:
        if name == "nobody":
            raise ValueError("who?")

    async def any(self, name: str, args: Sequence[RawValue]) -> int:
        self.seen.append(name)
        return len(args)


@pytest.mark.parametrize("cache", [True, False])
def test_handlers_set_at_run_time_take_what_came_with_the_first_task(cache: bool) -> None:
    driver = Driver(AtRunTime, cache=cache)
    driver.update("u", "greet", "Ann")
    driver.update("n", "greet", "nobody")
    driver.update("d", "whatever", 1, 2)
    driver.task()
    assert driver.kinds()[0] == "RejectUpdate"
    assert outcomes(driver) == {"u": "hello Ann", "d": 2}
    driver.update("e", "end")
    driver.task()
    assert driver.value() == ["Ann", "whatever", "end"]
    driver.replay()


def test_no_update_is_at_hand_elsewhere() -> None:
    @workflow.defn
    class Looks:
        @workflow.run
        async def run(self) -> bool:
            return workflow.current_update_info() is None

    driver = Driver(Looks)
    driver.task()
    assert driver.value() is True


@workflow.defn
class Quiet:
    @workflow.run
    async def run(self) -> None:
        await workflow.sleep(1)

    @workflow.update(unfinished_policy=HandlerUnfinishedPolicy.ABANDON)
    async def forever(self) -> None:
        await workflow.wait_condition(lambda: False)


def test_an_abandoned_one_is_not_told_about(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(Quiet)
    driver.update("u", "forever")
    driver.task()
    driver.history.timer_fired()
    driver.task()
    assert driver.kinds() == ["CompleteWorkflowExecution"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


class Around(WorkflowInboundInterceptor):
    def handle_update_validator(self, input: HandleUpdateInput) -> None:
        if input.args == ["forbidden"]:
            raise ApplicationError(f"{input.update} is not for you")
        super().handle_update_validator(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        return 100 + await super().handle_update_handler(input)


def test_interceptors_are_around_validator_and_handler() -> None:
    driver = started(interceptors=[Around])
    driver.update("u", "add", "forbidden")
    driver.update("v", "add", "")
    driver.update("w", "add", "bread")
    driver.task()
    assert driver.kinds() == ["RejectUpdate", "RejectUpdate", "AcceptUpdate", "CompleteUpdate"]
    assert outcomes(driver) == {"w": 101}
    driver.replay()


def test_updates_are_in_the_metadata() -> None:
    driver = started()
    (found,) = CONVERTER.payload_converter.from_payloads(driver.run.query("__workflow_metadata"))
    assert {"name": "slow", "description": "takes its time"} in found["updates"]


def test_definitions_that_cannot_be() -> None:
    def two(self: Any, one: int, another: int) -> None: ...

    @workflow.update
    def handler(self: Any, one: int) -> None: ...

    with pytest.raises(ValueError, match=r"takes 3 parameters, and .*handler 2; give it the same"):
        handler.validator(two)  # type: ignore[arg-type]

    async def waits(self: Any, one: int) -> None: ...

    with pytest.raises(ValueError, match="must be 'def', since it cannot wait"):
        handler.validator(waits)  # type: ignore[arg-type]

    class Lost(Basket):
        def add(self, item: str) -> int:  # type: ignore[override]
            return 0

        @workflow.run
        async def run(self) -> list[str]:
            return []

    with pytest.raises(ValueError, match=r"overrides a method with @workflow.update"):
        workflow.defn(Lost)


@pytest.mark.parametrize("cache", [True, False])
def test_updates_that_were_taken_over_from_another_run(cache: bool) -> None:
    """Their admission is an event; so is their rejection, which replay takes as it is."""
    driver = started(cache=cache)
    for update_id, item in (("u", "bread"), ("v", ""), ("w", "milk")):
        driver.update(update_id, "add", item)
        driver.history.add(ev.WorkflowExecutionUpdateAdmitted(request=driver.shown[-1].request))
    last = len(driver.history.events)
    driver.shown = [DeliveredUpdate(request=each.request, sequencing_event_id=last) for each in driver.shown]
    driver.task()
    assert driver.kinds() == ["AcceptUpdate", "RejectUpdate", "AcceptUpdate", "CompleteUpdate", "CompleteUpdate"]
    driver.update("x", "add", "honey")
    driver.task()
    assert outcomes(driver) == {"x": 3}
    run = driver.replay()
    assert run._runtime.handlers.instance.items == ["bread", "milk", "honey"]


def test_what_a_handler_logs_names_its_update(caplog: pytest.LogCaptureFixture) -> None:
    driver = started()
    driver.update("u", "add", "bread")
    driver.task()
    (record,) = caplog.records
    assert "'update_id': 'u', 'update_name': 'add'" in record.getMessage()
