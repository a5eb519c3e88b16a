"""Definitions that take what no other is named for (PM-05, PM-06)."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.activity import ActivityDefinition
from stepwell.common import RawValue
from stepwell.replay.errors import UnansweredQueryError
from stepwell.workflow.definition import WorkflowDefinition, query_reference, signal_reference, workflow_reference
from stepwell.workflow.dynamic import workflow_for

from tests.support.histories import CONVERTER, Driver, payloads


def values(raw: Sequence[RawValue]) -> list[Any]:
    return [workflow.payload_converter().from_payload(each.payload, Any) for each in raw]


@workflow.defn
class Mailbox:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    @workflow.run
    async def run(self) -> list[Any]:
        await workflow.wait_condition(lambda: "end" in self.seen)
        return self.seen

    @workflow.signal
    def end(self) -> None:
        self.seen.append("end")

    @workflow.signal(dynamic=True)
    async def anything(self, name: str, args: Sequence[RawValue]) -> None:
        self.seen.append([name, *values(args)])

    @workflow.query
    def count(self) -> int:
        return len(self.seen)

    @workflow.query(dynamic=True)
    def whatever(self, name: str, args: Sequence[RawValue]) -> str:
        return f"{name}: {values(args)}"


@pytest.mark.parametrize("cache", [True, False])
def test_handlers_are_looked_up_last_and_take_raw_values(cache: bool) -> None:
    d = Driver(Mailbox, cache=cache)
    d.task()
    d.history.signal("greet", "ann", 3)
    d.history.signal("bare")
    d.history.signal("end")
    d.task()
    assert d.value() == [["greet", "ann", 3], ["bare"], "end"]
    d.replay()


def test_queries() -> None:
    d = Driver(Mailbox)
    d.task()
    ask = lambda name, *args: CONVERTER.payload_converter.from_payloads(d.run.query(name, payloads(*args)))  # noqa: E731
    assert ask("count") == [0]
    assert ask("other", 1, "b") == ["other: [1, 'b']"]
    with pytest.raises(UnansweredQueryError):
        ask("__reserved")
    metadata = ask("__workflow_metadata")[0]
    assert {s["name"] for s in metadata["signals"]} == {"end", ""}


@workflow.defn
class Late:
    """Sets its handlers when much has come in already."""

    @workflow.run
    async def run(self) -> list[Any]:
        self.seen: list[Any] = []
        await workflow.wait_for_signal("start")
        assert workflow.get_dynamic_signal_handler() is None
        workflow.set_dynamic_signal_handler(self.take)
        workflow.set_dynamic_query_handler(lambda name, args: name)
        assert workflow.get_dynamic_signal_handler() == self.take
        await workflow.wait_condition(lambda: len(self.seen) == 4)
        workflow.set_dynamic_signal_handler(None)
        await workflow.wait_for_signal("b")
        return self.seen

    def take(self, name: str, args: Sequence[RawValue]) -> None:
        self.seen.append(f"{name}{values(args)[0]}")


def test_signals_that_came_before_the_handler_are_handed_over_in_their_order() -> None:
    d = Driver(Late, cache=False)
    for name, number in (("b", 1), ("a", 2), ("b", 3), ("a", 4)):
        d.history.signal(name, number)
    d.task()
    d.history.signal("start")
    d.task()
    assert CONVERTER.payload_converter.from_payloads(d.run.query("any")) == ["any"]
    d.history.signal("b", 5)
    d.task()
    assert d.value() == ["b1", "a2", "b3", "a4"]
    d.replay()


@workflow.defn(dynamic=True)
class Any_:
    @workflow.init
    def __init__(self, args: Sequence[RawValue]) -> None:
        self.count = len(args)

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> list[Any]:
        return [workflow.info().workflow_type, self.count, *values(args)]


@workflow.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> list[Any]:
    return [workflow.info().workflow_type, len(args), *values(args)]


@pytest.mark.parametrize("definition", [Any_, anything])
def test_a_dynamic_workflow_takes_raw_values(definition: Any) -> None:
    d = Driver(definition, "a", 2)
    d.task()
    assert d.value() == [WorkflowDefinition.must_of(definition).name, 2, "a", 2]


def test_lookup() -> None:
    named, dynamic = WorkflowDefinition.must_of(Mailbox), WorkflowDefinition.must_of(Any_)
    assert workflow_for({"Mailbox": named, "": dynamic}, "Mailbox") is named
    assert workflow_for({"Mailbox": named, "": dynamic}, "Other") is dynamic
    assert workflow_for({"Mailbox": named}, "Other") is None


def test_an_unfinished_dynamic_handler_is_named_after_its_signal(caplog: pytest.LogCaptureFixture) -> None:
    @workflow.defn
    class Hasty:
        @workflow.run
        async def run(self) -> None:
            await workflow.wait_for_signal("end")

        @workflow.signal(dynamic=True)
        async def slow(self, name: str, args: Sequence[RawValue]) -> None:
            await workflow.sleep(100)

    d = Driver(Hasty)
    d.task()
    d.history.signal("work")
    d.history.signal("end")
    with caplog.at_level(logging.WARNING):
        d.task()
    assert "signal handlers were running: work" in caplog.text


def test_refusals() -> None:
    with pytest.raises(ValueError, match="cannot have one of its own"):
        workflow.signal(name="x", dynamic=True)(lambda self, name, args: None)
    with pytest.raises(ValueError, match="cannot have one of its own"):
        workflow.defn(name="x", dynamic=True)(anything)
    with pytest.raises(ValueError, match="a dynamic signal takes name: str, args: Sequence"):
        workflow.signal(dynamic=True)(lambda self, name: None)
    with pytest.raises(ValueError, match="a dynamic query takes"):
        workflow.query(dynamic=True)(lambda self, name, args, more: None)

    async def two(a: int, b: int) -> None: ...

    with pytest.raises(ValueError, match="a dynamic workflow takes args"):
        workflow.defn(dynamic=True)(two)
    with pytest.raises(ValueError, match="a dynamic activity takes args"):
        activity.defn(dynamic=True)(two)
    with pytest.raises(ValueError, match="cannot have one of its own"):
        activity.defn(name="x", dynamic=True)
    with pytest.raises(ValueError, match="is a dynamic workflow; name the type"):
        workflow_reference(anything)
    with pytest.raises(ValueError, match="is dynamic; name the signal"):
        signal_reference(Mailbox.anything)
    with pytest.raises(ValueError, match="is dynamic; name the query"):
        query_reference(Mailbox.whatever)

    with pytest.raises(ValueError, match="two dynamic handlers"):

        @workflow.defn
        class Twice(Mailbox):
            @workflow.run
            async def run(self) -> list[Any]:
                return []

            @workflow.signal(dynamic=True)
            def more(self, name: str, args: Sequence[RawValue]) -> None: ...


def test_a_dynamic_activity() -> None:
    @activity.defn(dynamic=True)
    async def act(args: Sequence[RawValue]) -> int:
        return len(args)

    definition = ActivityDefinition.must_of(act)
    (raw,) = definition.arguments(CONVERTER.payload_converter, payloads(1, 2))
    assert raw == [RawValue(payload) for payload in payloads(1, 2)]
