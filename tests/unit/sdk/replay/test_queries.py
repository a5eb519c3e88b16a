"""Queries read and change nothing (MS-19, MS-24, PM-22)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.converter import ArgumentError
from stepwell.replay.errors import ReadOnlyContextError

from tests.support.histories import CONVERTER, Driver, payloads

SHORT = timedelta(seconds=10)


@workflow.defn
class Counter:
    def __init__(self) -> None:
        self.value = 1

    @workflow.query
    def plus(self, number: int) -> int:
        return self.value + number

    @workflow.query(name="broken", description="always fails")
    def raises(self) -> int:
        raise KeyError("nothing here")

    @workflow.query
    def asks(self, what: str) -> None:
        if what == "activity":
            workflow.start_activity("A", start_to_close_timeout=SHORT)
        elif what == "task":
            asyncio.ensure_future(workflow.sleep(1))  # noqa: RUF006
        elif what == "timer":
            asyncio.get_running_loop().call_later(1, print)
        elif what == "handler":
            workflow.set_signal_handler("x", None)

    @workflow.run
    async def run(self) -> None:
        workflow.set_query_handler("late", lambda: "set at run time")
        await workflow.wait_condition(lambda: False)


@pytest.fixture
def counter() -> Driver:
    d = Driver(Counter)
    d.task()
    return d


def ask(d: Driver, query: str, *args: Any) -> Any:
    return CONVERTER.payload_converter.from_payloads(d.run.query(query, payloads(*args)))[0]


def test_answers(counter: Driver) -> None:
    assert ask(counter, "plus", 2) == 3
    assert ask(counter, "late") == "set at run time"


def test_failures(counter: Driver) -> None:
    with pytest.raises(KeyError, match="nothing here"):
        ask(counter, "broken")
    with pytest.raises(ValueError, match="'Counter' has no query 'other'; it has: asks, broken, late, plus"):
        ask(counter, "other")
    with pytest.raises(ArgumentError, match="query 'plus', argument 'number'"):
        ask(counter, "plus", "x")


@pytest.mark.parametrize("what", ["activity", "task", "timer", "handler"])
def test_changes_are_refused_and_leave_nothing(counter: Driver, what: str) -> None:
    with pytest.raises(ReadOnlyContextError):
        ask(counter, "asks", what)
    counter.history.signal("nothing")
    assert counter.task().commands == ()


def test_built_in_queries(counter: Driver) -> None:
    assert "wait_condition" in ask(counter, "__stack_trace")
    metadata = ask(counter, "__workflow_metadata")
    assert metadata["type"] == "Counter"
    assert {"name": "broken", "description": "always fails"} in metadata["queries"]


def test_closed_runs_answer() -> None:
    @workflow.defn
    class Short:
        @workflow.query
        def state(self) -> str:
            return "kept"

        @workflow.run
        async def run(self) -> None: ...

    d = Driver(Short)
    d.task()
    assert ask(d, "state") == "kept"
