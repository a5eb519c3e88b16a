"""The worker's small parts, each by itself."""

import asyncio
import contextvars
import logging
import threading
import time
import typing

import pytest
from stepwell.api import commands as c
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.failures import ApplicationFailureInfo, CanceledFailureInfo, Failure
from stepwell.api.payloads import Payload
from stepwell.api.requests import ActivityCanceled, ActivityCompleted, ActivityFailed
from stepwell.api.updates import UpdateOutcome
from stepwell.converter import DataConverter
from stepwell.converter.failure_size import failure_size
from stepwell.exceptions import CancelledError
from stepwell.identity import default_identity, process_identity
from stepwell.replay.errors import WorkflowTaskError
from stepwell.worker.command_sizes import SIZES, check_sizes
from stepwell.worker.failure_log import FailureLog
from stepwell.worker.in_context import InContext
from stepwell.worker.leases import can_travel
from stepwell.worker.slots import Slots
from stepwell.worker.thread_interrupt import ThreadInterrupt

LIMIT = 2 * 1024 * 1024


async def test_slots_are_taken_before_they_are_used() -> None:
    slots = Slots(2)
    assert await slots.wait_for_one() and slots.take(5) == 1 and slots.free == 0
    waiting = asyncio.create_task(slots.wait_for_one())
    await asyncio.sleep(0)
    slots.give_back()
    assert await waiting and slots.used == 2


async def test_closed_slots_let_nobody_wait() -> None:
    slots = Slots(1)
    slots.take(1)
    waiting = asyncio.create_task(slots.wait_for_one())
    await asyncio.sleep(0)
    slots.close()
    assert not await waiting and not await slots.wait_for_one()


async def test_in_context_keeps_variables_apart_and_passes_values_errors_and_cancellation() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")

    async def inner() -> str:
        variable.set("inside")
        await asyncio.sleep(0)
        assert variable.get() == "inside"
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return variable.get()
        return "?"

    async def outer() -> tuple[str, str]:
        return await InContext(inner(), contextvars.copy_context()), variable.get()

    task = asyncio.create_task(outer())
    await asyncio.sleep(0.01)
    task.cancel()
    assert await task == ("inside", "outside")

    async def broken() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await InContext(broken(), contextvars.copy_context())


def test_thread_interrupt_is_raised_once_and_only_inside() -> None:
    interrupt = ThreadInterrupt()
    interrupt.interrupt()
    entered = []

    def work() -> None:
        try:
            interrupt.enter()
            try:
                entered.append(True)
                while True:
                    pass
            finally:
                interrupt.leave()
        except CancelledError:
            entered.append(False)
        for _ in range(1000):
            time.sleep(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(5)
    assert not thread.is_alive() and entered[-1] is False


def test_thread_interrupt_after_the_end_is_dropped() -> None:
    interrupt = ThreadInterrupt()
    interrupt.enter()
    interrupt.leave()
    interrupt.interrupt()
    for _ in range(1000):
        time.sleep(0)


def test_process_identity_is_this_process() -> None:
    identity = process_identity()
    assert identity is not None and identity == process_identity()
    assert default_identity().startswith(f"{identity.pid}@") and identity.started.isdigit()


def schedule(input: int = 0, **options: object) -> c.ScheduleActivityTask:
    payload = Payload(data=b"x" * input)
    return c.ScheduleActivityTask(activity_id="1", activity_type="charge", task_queue="q", input=(payload,), **options)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([schedule(LIMIT + 1)], "input of activity 'charge'"),
        ([c.CompleteWorkflowExecution(result=(Payload(data=b"x" * (LIMIT + 1)),))], "the workflow's result"),
        ([c.FailWorkflowExecution(failure=Failure(message="x" * (LIMIT + 1)))], "the workflow's failure"),
        ([schedule(LIMIT), schedule(LIMIT), schedule(1)], "the 3 commands of one workflow task"),
    ],
)
def test_oversize_commands_name_what_how_much_and_the_way_out(commands: list[c.Command], message: str) -> None:
    with pytest.raises(WorkflowTaskError, match=message) as caught:
        check_sizes(commands)
    assert caught.value.failed_cause is WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE
    assert "the limit is" in str(caught.value) and "store the data elsewhere" in str(caught.value)


def test_every_command_has_its_size() -> None:
    assert set(SIZES) == set(typing.get_args(c.Command))


def test_what_counts_of_each_command() -> None:
    one = (Payload(data=b"x" * 10),)
    named = {"n": one[0]}
    failure = Failure(message="x" * 10)
    commands: list[tuple[c.Command, int]] = [
        (
            c.ContinueAsNewWorkflowExecution(
                workflow_type="t", task_queue="q", input=one, headers=named, memo=named, search_attributes=named
            ),
            40,
        ),
        (c.ContinueAsNewWorkflowExecution(workflow_type="t", task_queue="q"), 0),
        (
            c.StartChildWorkflowExecution(
                workflow_id="w",
                workflow_type="t",
                task_queue="q",
                input=one,
                headers=named,
                memo=named,
                search_attributes=named,
            ),
            40,
        ),
        (
            c.SignalExternalWorkflowExecution(
                execution=WorkflowExecution(workflow_id="w"), signal_name="s", input=one, headers=named
            ),
            20,
        ),
        (c.UpsertWorkflowSearchAttributes(search_attributes=named), 10),
        (c.ModifyWorkflowProperties(upserted_memo=named), 10),
        (c.RejectUpdate(update_id="u", failure=failure), failure_size(failure)),
        (c.CompleteUpdate(update_id="u", outcome=UpdateOutcome(success=one)), 10),
        (c.CompleteUpdate(update_id="u", outcome=UpdateOutcome(failure=failure)), failure_size(failure)),
    ]
    assert [SIZES[type(command)](command) for command, _ in commands] == [size for _, size in commands]


def test_exactly_the_limit_is_allowed() -> None:
    check_sizes([schedule(LIMIT), schedule(LIMIT), schedule(0)])


def failed(info: ApplicationFailureInfo | CanceledFailureInfo | None, **options: bool) -> ActivityFailed:
    return ActivityFailed(task_token=b"t", failure=Failure(message="m", info=info), **options)


def test_only_what_is_never_tried_again_travels_in_a_step() -> None:
    plain = schedule()
    listed = schedule(retry_policy=RetryPolicy(non_retryable_error_types=("Declined",)))
    assert can_travel(ActivityCompleted(task_token=b"t"), plain)
    assert can_travel(ActivityCanceled(task_token=b"t"), plain)
    assert can_travel(failed(ApplicationFailureInfo(non_retryable=True)), plain)
    assert can_travel(failed(ApplicationFailureInfo(failure_type="Declined")), listed)
    assert not can_travel(failed(ApplicationFailureInfo(failure_type="Declined")), plain)
    assert not can_travel(failed(ApplicationFailureInfo(failure_type="Decline")), listed)
    assert not can_travel(failed(None), plain)
    assert not can_travel(failed(ApplicationFailureInfo(non_retryable=True), worker_shutdown=True), plain)


def test_each_failure_is_logged_once_per_run(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog(DataConverter.default.payload_converter)
    with caplog.at_level(logging.WARNING):
        for run_id, message in [("r1", "a"), ("r1", "a"), ("r1", "b"), ("r2", "a")]:
            error = WorkflowTaskError(
                WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR, Failure(message=message, stack_trace="line 7")
            )
            log.report("Order", WorkflowExecution(workflow_id="w", run_id=run_id), error)
    assert len(caplog.records) == 3
    text = caplog.records[0].getMessage()
    assert all(part in text for part in ("Order", "'w'", "r1", "NON_DETERMINISTIC_ERROR", "line 7"))
