"""Workflows that go on as another run."""

from datetime import timedelta

from stepwell import activity, workflow
from stepwell.converter import ArgumentError

SHORT = timedelta(milliseconds=200)


@activity.defn
async def double(number: int) -> int:
    return 2 * number


@workflow.defn
class Counter:
    """Counts in runs of its own: an activity in each."""

    @workflow.run
    async def run(self, left: int, total: int = 1) -> int:
        total = await workflow.execute_activity(double, total, start_to_close_timeout=timedelta(seconds=30))
        if left > 1:
            workflow.continue_as_new(args=[left - 1, total])
        return total


@workflow.defn
class Inbox:
    """Takes one message in each run, and says what it knows of itself."""

    def __init__(self) -> None:
        self.new: list[str] = []

    @workflow.signal
    def put(self, item: str) -> None:
        self.new.append(item)

    @workflow.query
    def taken(self) -> list[str]:
        return self.new

    @workflow.run
    async def run(self, wanted: int, items: list[str]) -> list[str]:
        await workflow.wait_condition(lambda: bool(self.new))
        items += self.new
        if len(items) < wanted:
            workflow.continue_as_new(args=[wanted, items])
        return items


@workflow.defn
class FromHandler:
    """A handler ends the run."""

    @workflow.signal
    async def again(self, text: str) -> None:
        workflow.continue_as_new(text)

    @workflow.run
    async def run(self, text: str = "") -> str:
        await workflow.wait_condition(lambda: bool(text))
        return text


@workflow.defn
class First:
    """Hands over to a workflow of another type, with everything else set too."""

    @workflow.run
    async def run(self) -> list[str]:
        workflow.continue_as_new(
            "handed over",
            workflow=Second.run,
            run_timeout=timedelta(seconds=300),
            task_timeout=timedelta(seconds=5),
            backoff_start_interval=SHORT,
            memo={"note": "kept"},
        )


@workflow.defn
class Second:
    @workflow.run
    async def run(self, text: str) -> list[str]:
        info = workflow.info()
        note = workflow.payload_converter().from_payload(info.raw_memo["note"], str)
        assert info.task_timeout == timedelta(seconds=5) and info.run_timeout == timedelta(seconds=300)
        assert info.first_execution_run_id == info.continued_run_id != info.run_id
        return [text, note, info.workflow_type]


@workflow.defn
class Misfit:
    """Its next run would not get what it needs; it is told at the call."""

    @workflow.run
    async def run(self, number: int) -> str:
        try:
            workflow.continue_as_new("no number")
        except ArgumentError as error:
            return type(error).__name__


@workflow.defn
class GrowsLong:
    """Goes on as new when it is told to; its history is 4,100 markers at once."""

    @workflow.run
    async def run(self, runs: int = 0) -> list[int | str]:
        if runs == 1:
            return [runs, workflow.info().get_current_history_length()]
        assert not workflow.info().is_continue_as_new_suggested()
        for number in range(4_100):
            workflow.patched(f"change {number}")
        await workflow.execute_activity(double, 1, start_to_close_timeout=timedelta(seconds=30))
        if not workflow.info().is_continue_as_new_suggested():
            return ["not told"]
        (reason,) = workflow.info().get_continue_as_new_suggested_reasons()
        if reason != "TOO_MANY_HISTORY_EVENTS":
            return [reason]
        workflow.continue_as_new(runs + 1)
