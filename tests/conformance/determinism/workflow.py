"""What changes from call to call in ordinary code."""

from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.converter import ArgumentError

LIMIT = timedelta(seconds=30)


@activity.defn
async def keep(values: list[str]) -> list[str]:
    return values


@workflow.defn
class Draws:
    """Draws before and behind a wait, and has an activity keep what it drew: a replay that draws otherwise is seen."""

    def __init__(self) -> None:
        self.generator = workflow.new_random()

    @workflow.run
    async def run(self) -> bool:
        first = self.draw()
        kept_first = await workflow.execute_activity(keep, first, start_to_close_timeout=LIMIT)
        await workflow.wait_for_signal("go")
        second = self.draw()
        kept_second = await workflow.execute_activity(keep, second, start_to_close_timeout=LIMIT)
        return kept_first == first and kept_second == second and not set(first) & set(second)

    def draw(self) -> list[str]:
        numbers = [workflow.random().random(), self.generator.random()]
        ids = [workflow.uuid4(), workflow.uuid7()]
        return [*map(str, numbers), *map(str, ids), workflow.now().isoformat(), str(workflow.time_ns())]


@workflow.defn
async def draws_once() -> float:
    return workflow.random().random()


@workflow.defn
class Mailbox:
    @workflow.signal
    def put(self, letter: str) -> None:
        """Takes text alone."""

    @workflow.run
    async def run(self, letter: str) -> None:
        """Takes text alone."""


@workflow.defn
async def misfits() -> list[str]:
    """Catches what is said of values that do not fit, in calls of each kind, and goes on."""
    wrong: Any = 5
    mailbox = workflow.get_external_workflow_handle_for(Mailbox.run, "mailbox")
    refused = []
    for call in (
        lambda: workflow.execute_activity(keep, wrong, start_to_close_timeout=LIMIT),
        lambda: workflow.execute_local_activity(keep, wrong, start_to_close_timeout=LIMIT),
        lambda: workflow.execute_child_workflow(Mailbox.run, wrong, id="mailbox"),
        lambda: workflow.execute_child_workflow(Mailbox.run, "a", id="mailbox", memo={"stamp": object()}),
        lambda: mailbox.signal(Mailbox.put, wrong),
    ):
        try:
            await call()
        except ArgumentError as error:
            refused.append(str(error).split(",")[0].split(": ")[0])
    return await workflow.execute_activity(keep, refused, start_to_close_timeout=LIMIT)
