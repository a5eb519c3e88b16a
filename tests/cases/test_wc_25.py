"""WC-25: typed round trip and text. Through an activity, a child, continue-as-new, a signal and a query; the page comes
later."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from stepwell import activity, workflow
from stepwell.client import Client, WorkflowHandle
from stepwell.converter import ArgumentError
from stepwell.replay.replayer import Replayer

from tests.support.api_server import served_api
from tests.support.cases_b import LIMIT, QUEUE, cache_on_and_off, engine, failing_task, kinds, within, worker

TEXT = "naïve café, 日本語, 😀🏳️‍🌈, „quotes“"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Line:
    article: str
    price: Decimal
    count: int = 1


@dataclass
class Order:
    id: UUID
    placed: datetime
    lines: list[Line]
    colour: Colour = Colour.RED
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    by_number: dict[int, Line] = field(default_factory=dict)


ORDER = Order(
    UUID("12345678-1234-5678-1234-567812345678"),
    datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
    [Line("ä", Decimal("1.10")), Line("日", Decimal("0.00"), 3)],
    colour=Colour.BLUE,
    tags={"x", "y"},
    by_number={7: Line("seven", Decimal("7"))},
)

# Annotation and value; each must arrive equal in value and type.
VALUES: list[tuple[Any, Any]] = [
    (bytes, b"\x00\xff"),
    (str, ""),
    (type(None), None),
    (str | None, None),
    (list[bool | int], [True, 1, False, 0]),
    (int, 2**53 + 1),
    (int, 2**200),
    (float, -0.0),
    (float, 1e300),
    (Decimal, Decimal("1.10")),
    (datetime, datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)),
    (datetime, datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)),
    (datetime, datetime(2026, 3, 1, 12, 30, 15, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
    (datetime, datetime(2026, 3, 1, 12, 30)),  # noqa: DTZ001 # naive is what is tried
    (datetime, datetime(2026, 3, 1, 12, 30, 0, 1)),  # noqa: DTZ001
    (date, date(2026, 2, 28)),
    (time, time(23, 59, 59, 999999)),
    (timedelta, timedelta(days=-1, microseconds=1)),
    (timedelta, timedelta(days=400, seconds=3)),
    (UUID, ORDER.id),
    (Colour, Colour.BLUE),
    (Level, Level.HIGH),
    (Order, ORDER),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (set[str], {"a", "b"}),
    (dict[int, str], {1: "one", 2**60: "many"}),
    (dict[str, list[tuple[int, Decimal]]], {"a b": [(1, Decimal("2.50"))]}),
    (str, TEXT),
    (str, "with \x00 NUL and \x1b escape"),
]


def _flow(number: int, hint: Any) -> tuple[list[Any], Callable[..., Any]]:
    """A workflow of this annotation that echoes through an activity, a child and a next run, then waits for a signal
    and gives that back."""

    @activity.defn(name=f"echo-{number}")
    async def echo(value: hint) -> hint:
        return value

    @workflow.defn(name=f"child-{number}")
    async def child(value: hint) -> hint:
        return value

    @workflow.defn(name=f"flow-{number}")
    class Flow:
        @workflow.run
        async def run(self, value: hint) -> hint:
            echoed = await workflow.execute_activity(echo, value, start_to_close_timeout=LIMIT)
            echoed = await workflow.execute_child_workflow(child, echoed)
            info = workflow.info()
            if info.run_id == info.first_execution_run_id:
                workflow.continue_as_new(echoed)
            self.echoed = echoed
            await workflow.wait_condition(lambda: hasattr(self, "told"))
            return self.told

        @workflow.signal
        def tell(self, value: hint) -> None:
            self.told = value

        @workflow.query
        def ask(self, value: hint) -> hint:
            return self.echoed if value == self.echoed else None

    return [Flow, child], echo


FLOWS = [_flow(number, hint) for number, (hint, _) in enumerate(VALUES)]
WORKFLOWS = [flow for flows, _ in FLOWS for flow in flows]
ACTIVITIES = [echo for _, echo in FLOWS]


def _same(found: Any, value: Any) -> bool:
    """Equal in value and type, all the way down; only the order of a set is free."""
    if isinstance(value, Order):
        return vars(found) == vars(value) and type(found) is Order
    return type(found) is type(value) and found == value and (isinstance(value, set) or repr(found) == repr(value))


async def _round_trip(client: Client, number: int) -> None:
    (flow, _), _ = FLOWS[number]
    _, value = VALUES[number]
    await client.start_workflow(flow.run, value, id=f"trip-{number}", task_queue=QUEUE)
    handle: WorkflowHandle[Any] = client.get_workflow_handle_for(flow.run, f"trip-{number}")
    while await _in_first_run(handle) or "ChildWorkflowExecutionCompleted" not in await kinds(handle):
        await asyncio.sleep(0.01)
    echoed = await within(10, handle.query(flow.ask, value))
    assert _same(echoed, value), (echoed, value)
    await handle.signal(flow.tell, value)
    result = await within(10, handle.result())
    assert _same(result, value), (result, value)
    await Replayer(workflows=WORKFLOWS).replay_workflow(await handle.fetch_history())


async def _in_first_run(handle: WorkflowHandle[Any]) -> bool:
    info = (await handle.describe()).raw_info
    return info.execution.run_id == info.first_run_id


@cache_on_and_off
async def test_equal_in_value_and_type(tmp_path: Path, cache: int) -> None:
    """Echo each value, with type hints, from the client into the workflow, through an activity, a child and a next run,
    out of a query, in by a signal and back as the result. Each is equal in value and type everywhere."""
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, ACTIVITIES, cache):
        for number in range(len(VALUES)):
            await within(20, _round_trip(client, number))


# Annotation, value, and what the refusal names.
REFUSED: list[tuple[Any, Any, list[str]]] = [
    (str, "half \ud800 a pair", ["$", "U+D800", "position 5"]),
    (list[str], ["fine", "\udfff"], ["$[1]", "U+DFFF"]),
    (Order, Order(ORDER.id, ORDER.placed, [Line("\ud800", Decimal(1))]), ["$.lines[0].article", "U+D800"]),
    (dict[str, Any], {"a": {1: "x"}}, ["$.a", "key 1"]),
    (Any, {1: "x"}, ["$", "key 1"]),
    (float, float("nan"), ["$", "nan"]),
    (list[float], [1.0, float("inf")], ["$[1]", "inf"]),
    (int, True, ["int", "bool"]),
    (int, 1.5, ["int"]),
    (str, b"bytes", ["str"]),
    (tuple[int, str], ("a", 1), ["int"]),
    (Order, {"id": "no order"}, ["Order"]),
    (Any, object(), ["object", "$"]),
]


@pytest.mark.parametrize(("hint", "value", "said"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
async def test_refused_at_the_sender_with_the_path(tmp_path: Path, hint: Any, value: Any, said: list[str]) -> None:
    """What would not arrive unchanged is refused where it is sent, with its place in the value: at the client for a
    start, a signal and a query, and nothing is written."""
    (flow, _), _ = _flow(1000, hint)
    async with engine(tmp_path) as client:
        handle = client.get_workflow_handle("never")
        for send in (
            client.start_workflow(flow.run, value, id="never", task_queue=QUEUE),
            handle.signal(flow.tell, value),
            handle.query(flow.ask, value),
        ):
            with pytest.raises(ArgumentError) as caught:
                await send
            for part in (*said, "'value'"):
                assert part in str(caught.value), str(caught.value)
        assert [found async for found in client.list_workflows()] == []


async def test_workflow_code_that_sends_it(tmp_path: Path) -> None:
    """The same from workflow code: the call raises there, with activity, argument and path, before anything is
    scheduled."""

    @activity.defn
    async def takes_text(value: list[str]) -> None:
        return None

    @workflow.defn
    async def sender() -> str:
        try:
            await workflow.execute_activity(takes_text, ["\ud800"], start_to_close_timeout=LIMIT)
        except ArgumentError as error:
            return str(error)
        return "sent"

    async with engine(tmp_path) as client, worker(client, [sender], [takes_text]):
        handle = await client.start_workflow(sender, id="sender", task_queue=QUEUE)
        said = await within(10, handle.result())
        assert "'takes_text', argument 'value'" in said and "$[0]" in said
        assert "ActivityTaskScheduled" not in await kinds(handle)


@dataclass
class Older:
    name: str


@dataclass
class Newer:
    name: str
    extra: int
    note: str | None = None


@dataclass
class Current:
    name: str
    note: str | None = None


@workflow.defn(name="evolving")
async def takes_older(value: Older) -> str:
    return await workflow.execute_activity(describes_older, value, start_to_close_timeout=LIMIT)


@activity.defn(name="describes")
async def describes_older(value: Older) -> str:
    return repr(value)


@workflow.defn(name="evolving")
async def takes_current(value: Current) -> str:
    return await workflow.execute_activity(describes_current, value, start_to_close_timeout=LIMIT)


@activity.defn(name="describes")
async def describes_current(value: Current) -> str:
    return repr(value)


@cache_on_and_off
async def test_missing_optional_and_unknown_extra_fields(tmp_path: Path, cache: int) -> None:
    """A sender that does not know an optional field yet, and one that knows a field more: the receiver fills in the
    default and leaves out what it does not know. Histories from before the field was added replay."""
    async with engine(tmp_path) as client:
        async with worker(client, [takes_older], [describes_older], cache):
            before: WorkflowHandle[str] = await client.start_workflow(
                takes_older, Older("before"), id="before", task_queue=QUEUE
            )
            assert await within(10, before.result()) == "Older(name='before')"
        async with worker(client, [takes_current], [describes_current], cache):
            for value in (Older("ann"), Newer("ann", 7)):
                result = await within(10, client.execute_workflow("evolving", value, id="now", task_queue=QUEUE))
                assert result == "Current(name='ann', note=None)"
        await Replayer(workflows=[takes_current]).replay_workflow(await before.fetch_history())


async def test_an_argument_that_does_not_fit_shows_as_a_failing_task(tmp_path: Path) -> None:
    """Sent by name, so that the sender cannot know: the receiver names the field that does not fit."""
    async with engine(tmp_path) as client, worker(client, [takes_current], [describes_current]):
        handle = await client.start_workflow("evolving", {"name": 7}, id="bad", task_queue=QUEUE)
        pending = await failing_task(handle)
        assert pending.last_failure is not None and "$.name" in pending.last_failure.message


async def test_text_is_readable_on_the_command_line(tmp_path: Path) -> None:
    """All values through a server over HTTP; on the command line, text with accents, CJK and emoji shows as it is, in
    the history and as a result, also as JSON; control characters show as escapes and never reach the terminal."""
    async with served_api() as api, await Client.connect(api.address) as client:
        async with worker(client, WORKFLOWS, ACTIVITIES):
            for number in range(len(VALUES)):
                await within(20, _round_trip(client, number))
        text, control = len(VALUES) - 2, len(VALUES) - 1
        for command in (("show",), ("show", "--full"), ("result",), ("result", "-o", "json")):
            assert TEXT in await _stepwell(api.address, f"trip-{text}", *command)
            said = await _stepwell(api.address, f"trip-{control}", *command)
            assert "\x00" not in said and "\x1b" not in said
            assert "\\u0000" in said


async def _stepwell(address: str, workflow_id: str, command: str, *options: str) -> str:
    stepwell = Path(sys.executable).with_name("stepwell")
    done = await asyncio.to_thread(
        subprocess.run,
        [stepwell, "workflow", command, workflow_id, "--address", address, *options],
        capture_output=True,
        timeout=30,
        check=True,
    )
    return done.stdout.decode()
