"""A workflow, an activity and handlers without a name of their own."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.common import RawValue

ATTEMPT = timedelta(seconds=30)


@activity.defn(dynamic=True)
async def perform(args: Sequence[RawValue]) -> str:
    converter = activity.payload_converter()
    values = [converter.from_payload(each.payload, Any) for each in args]
    return f"{activity.info().activity_type}{values}"


@activity.defn
async def known() -> str:
    return "known"


@workflow.defn(dynamic=True)
class Interpreter:
    """Its steps are its arguments; a signal adds one, a query tells how many of a kind were done."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[Any]]] = []
        self.done: list[str] = []
        self.closed = False

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> list[str]:
        self.steps = [(workflow.info().workflow_type, self.values(args)), *self.steps]
        while self.steps or not self.closed:
            await workflow.wait_condition(lambda: bool(self.steps) or self.closed)
            for name, values in self.steps:
                result = await workflow.execute_activity(
                    name, args=values, start_to_close_timeout=timedelta(seconds=30)
                )
                self.done.append(result)
            self.steps = []
        return self.done

    @workflow.signal
    def close(self) -> None:
        self.closed = True

    @workflow.signal(dynamic=True)
    def step(self, name: str, args: Sequence[RawValue]) -> None:
        self.steps.append((name, self.values(args)))

    @workflow.query(dynamic=True)
    def how_many(self, name: str, args: Sequence[RawValue]) -> int:
        return len([each for each in self.done if each.startswith(name)])

    def values(self, args: Sequence[RawValue]) -> list[Any]:
        return [workflow.payload_converter().from_payload(each.payload, Any) for each in args]


@workflow.defn
async def named() -> str:
    return "named"
