"""Interceptors around workflow code: what comes in, and what it asks for (PM-30)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.commands import ScheduleActivityTask
from stepwell.replay.errors import ReadOnlyContextError, WorkflowTaskError
from stepwell.worker import (
    ExecuteWorkflowInput,
    HandleQueryInput,
    HandleSignalInput,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from tests.support.histories import CONVERTER, Driver, payloads

SHORT = timedelta(seconds=10)
HEADER = payloads("tenant-7")[0]


@workflow.defn
class Collecting:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @workflow.run
    async def run(self, greeting: str) -> list[str]:
        self.seen.append(greeting)
        await workflow.wait_condition(lambda: "end" in self.seen)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.seen

    @workflow.signal
    def add(self, item: str) -> None:
        self.seen.append(item)

    @workflow.signal
    async def fetch(self, item: str) -> None:
        self.seen.append(await workflow.execute_activity("fetch", item, start_to_close_timeout=SHORT))

    @workflow.query
    def count(self, plus: int) -> str:
        return str(len(self.seen) + plus)


def loud(mark: str) -> type[WorkflowInboundInterceptor]:
    """Puts its mark around everything."""

    class Outbound(WorkflowOutboundInterceptor):
        def start_activity(self, input: StartActivityInput) -> "workflow.ActivityHandle[Any]":
            input.args = [f"{mark}{input.args[0]}"]
            input.headers = {**input.headers, mark: HEADER}
            return self.next.start_activity(input)

    class Inbound(WorkflowInboundInterceptor):
        def init(self, outbound: WorkflowOutboundInterceptor) -> None:
            super().init(Outbound(outbound))

        async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
            input.args = [f"{mark}{input.args[0]}"]
            return [*await self.next.execute_workflow(input), mark]

        async def handle_signal(self, input: HandleSignalInput) -> None:
            if input.args[0] == "drop":
                return
            input.args = [input.args[0] if input.args[0] == "end" else f"{mark}{input.args[0]}"]
            await self.next.handle_signal(input)

        async def handle_query(self, input: HandleQueryInput) -> Any:
            return f"{mark}{await self.next.handle_query(input)}"

    return Inbound


@pytest.mark.parametrize("cache", [True, False])
def test_the_first_is_the_outermost_in_both_directions(cache: bool) -> None:
    d = Driver(Collecting, "hello", cache=cache, interceptors=[loud("a"), loud("b")])
    d.task()
    d.history.signal("add", "item")
    d.history.signal("add", "drop")
    d.history.signal("fetch", "page")
    d.history.signal("add", "end")
    command = d.task().commands[0]
    assert isinstance(command, ScheduleActivityTask)
    assert CONVERTER.payload_converter.from_payloads(command.input) == ["abbapage"]
    assert list(command.headers) == ["b", "a"]
    answer = d.run.query("count", payloads(10))
    assert CONVERTER.payload_converter.from_payloads(answer) == ["ab13"]
    d.history.activity_completed("1", "fetched")
    d.task()
    assert d.value() == ["bahello", "baitem", "end", "fetched", "b", "a"]
    d.replay()


def test_a_run_that_began_without_replays_with_them() -> None:
    d = Driver(Collecting, "hello")
    d.task()
    d.history.signal("add", "item")
    d.history.signal("fetch", "page")
    d.task()
    d.interceptors = [loud("a")]
    d.replay()


class Waiting(WorkflowInboundInterceptor):
    """Waits where it must not; asks for an activity of its own where it may."""

    async def handle_query(self, input: HandleQueryInput) -> Any:
        await asyncio.sleep(0)
        return await self.next.handle_query(input)

    async def handle_signal(self, input: HandleSignalInput) -> None:
        await workflow.execute_activity("check", input.signal, start_to_close_timeout=SHORT)
        await self.next.handle_signal(input)


def test_an_interceptor_of_a_query_must_not_wait() -> None:
    d = Driver(Collecting, "hello", interceptors=[Waiting])
    d.task()
    with pytest.raises(ReadOnlyContextError, match="interceptor waited"):
        d.run.query("count", payloads(1))
    assert d.task().commands == ()


def test_a_handler_that_an_interceptor_holds_up_counts_as_running() -> None:
    d = Driver(Collecting, "hello", cache=False, interceptors=[Waiting])
    d.task()
    d.history.signal("add", "late")
    d.history.signal("add", "end")
    assert len(d.task().commands) == 2
    d.history.activity_completed("2")
    assert d.task().commands == ()
    d.history.activity_completed("1")
    d.task()
    assert d.value() == ["hello", "end", "late"]
    d.replay()


@workflow.defn
async def one_call() -> Any:
    return await workflow.execute_activity("fetch", 1, start_to_close_timeout=SHORT)


def changing(**changes: Any) -> type[WorkflowInboundInterceptor]:
    class Outbound(WorkflowOutboundInterceptor):
        def start_activity(self, input: StartActivityInput) -> "workflow.ActivityHandle[Any]":
            for name, value in changes.items():
                setattr(input, name, value)
            return self.next.start_activity(input)

        def info(self) -> workflow.Info:
            workflow.extern_functions()
            return self.next.info()

    class Inbound(WorkflowInboundInterceptor):
        def init(self, outbound: WorkflowOutboundInterceptor) -> None:
            self.next.init(Outbound(outbound))

        async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
            assert (input.type, input.run_fn, input.args) == (None, one_call, [])
            return f"{workflow.info().workflow_type}: {await self.next.execute_workflow(input)}"

    return Inbound


def test_a_function_style_workflow_and_the_options_of_a_call() -> None:
    d = Driver(one_call, interceptors=[changing(task_queue="other", heartbeat_timeout=timedelta(seconds=1))])
    command = d.task().commands[0]
    assert isinstance(command, ScheduleActivityTask)
    assert (command.task_queue, command.heartbeat_timeout) == ("other", timedelta(seconds=1))
    d.step("1", "page")
    assert d.value() == "one_call: page"
    d.replay()


def test_what_an_interceptor_asks_for_is_checked_too() -> None:
    d = Driver(one_call, interceptors=[changing(start_to_close_timeout=None)])
    with pytest.raises(WorkflowTaskError, match="needs start_to_close_timeout"):
        d.task()


class Broken(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        raise KeyError("bug in the interceptor")


def test_a_bug_in_an_interceptor_fails_the_task_alone() -> None:
    d = Driver(one_call, interceptors=[Broken])
    with pytest.raises(WorkflowTaskError, match="bug in the interceptor"):
        d.task()
