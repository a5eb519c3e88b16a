"""WC-01: a burst of signals lands while the closing task is in flight."""

import asyncio
import itertools
from collections.abc import Sequence
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.api.events import (
    ActivityTaskScheduled,
    HistoryEvent,
    WorkflowExecutionSignaled,
    WorkflowTaskStarted,
)
from stepwell.client import Client, RPCError, WorkflowHandle

from tests.support.cases import ATTEMPT, Case, attributes, events_of

ROUNDS = 4
SENDERS = 4
BURST = 50
"""Signals of each sender that are sent as fast as it can, refused or not."""


@activity.defn
async def pack(seen: int) -> int:
    """Takes a moment, in which signals come in."""
    await asyncio.sleep(0.03)
    return seen


@workflow.defn
class Collect:
    """Waits for an item, takes one step, and returns everything that came."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    @workflow.signal
    def add(self, number: int) -> None:
        self.numbers.append(number)

    @workflow.run
    async def run(self) -> list[int]:
        await workflow.wait_condition(lambda: bool(self.numbers))
        await workflow.execute_activity(pack, len(self.numbers), start_to_close_timeout=ATTEMPT)
        return self.numbers


@workflow.defn
class CollectInRuns:
    """The same, but goes on as a new run behind each step, until it has had ``left`` of them."""

    def __init__(self) -> None:
        self.new: list[int] = []

    @workflow.signal
    def add(self, number: int) -> None:
        self.new.append(number)

    @workflow.run
    async def run(self, numbers: list[int], left: int) -> list[int]:
        await workflow.wait_condition(lambda: bool(self.new))
        await workflow.execute_activity(pack, len(self.new), start_to_close_timeout=ATTEMPT)
        if left > 1:
            workflow.continue_as_new(args=[numbers + self.new, left - 1])
        return numbers + self.new


def check_refusal(error: RPCError) -> None:
    """It says that the run is closed, and that sending again is of no use."""
    assert error.code == "WORKFLOW_EXECUTION_CLOSED", error
    assert "COMPLETED" in str(error.details) and "closed" in error.message
    assert not error.retryable


async def send(client: Client, workflow_id: str, numbers: Sequence[int], endless: "itertools.count[int]") -> set[int]:
    """Sends all of ``numbers``, then of ``endless`` until refused; returns what was acknowledged."""
    handle = client.get_workflow_handle(workflow_id)
    acknowledged: set[int] = set()
    for number in itertools.chain(numbers, endless):
        try:
            await handle.signal("add", number)
        except RPCError as error:
            check_refusal(error)
            if number not in numbers:
                return acknowledged
        else:
            acknowledged.add(number)
    raise AssertionError("unreachable")


def seen_by_main(events: Sequence[HistoryEvent]) -> tuple[int, int]:
    """Signals recorded before the task in which main went on, and how many it says it had then."""
    scheduled = next(event for event in events if isinstance(event.attributes, ActivityTaskScheduled))
    started_at = max(
        event.event_id
        for event in events
        if isinstance(event.attributes, WorkflowTaskStarted) and event.event_id < scheduled.event_id
    )
    before = attributes([event for event in events if event.event_id < started_at], WorkflowExecutionSignaled)
    assert isinstance(scheduled.attributes, ActivityTaskScheduled)
    return len(before), int(scheduled.attributes.input[0].data)


async def burst(case: Case, handle: WorkflowHandle[list[int]]) -> None:
    """What the workflow returns is what was acknowledged."""
    workflow_id = handle.id
    endless = itertools.count(SENDERS * BURST)

    async def sender(index: int) -> set[int]:
        async with await Client.connect(case.address) as client:
            return await send(client, workflow_id, range(index * BURST, (index + 1) * BURST), endless)

    # In process, all clients of a file share one event loop; over HTTP each has a thread of its own.
    sending = [
        asyncio.to_thread(asyncio.run, sender(index)) if case.setting.over_http else sender(index)
        for index in range(SENDERS)
    ]
    acknowledged = set().union(*await asyncio.gather(*sending))
    result = await handle.result()
    assert sorted(result) == sorted(acknowledged), (
        f"lost {acknowledged - set(result)}, made up {set(result) - acknowledged}"
    )


async def one_round(case: Case, number: int) -> None:
    handle = await case.start(Collect.run, id=f"burst-{number}", run_timeout=timedelta(seconds=60))
    await burst(case, handle)
    recorded, seen = seen_by_main(await events_of(handle))
    assert recorded == seen >= 1, "main went on before the handlers of recorded signals had run"


async def test_every_acknowledged_signal_is_in_the_result_once(case: Case) -> None:
    """Tried: four clients send 200 numbered signals as fast as they can, and go on until they are refused, while the
    workflow takes one 30 ms step behind its first item and returns the list. Four rounds.

    Right: the list has exactly the acknowledged numbers, each once; every refusal says that the run is closed; the run
    does close, although signals never stop; handlers of all signals recorded before a task ran before main went on.
    """
    async with case.worker([Collect], [pack]):
        for number in range(ROUNDS):
            await one_round(case, number)


RUNS = 20


async def test_every_acknowledged_signal_is_in_the_result_of_the_chain_once(case: Case) -> None:
    """Tried: the same, over a workflow that continues as new behind each of 20 steps and hands its list on.

    Right: the list of the last run has exactly the acknowledged numbers, each once; signals that a run had not seen
    when it continued came to the next; no run was held up by them.
    """
    async with case.worker([CollectInRuns], [pack]):
        handle = await case.start(CollectInRuns.run, [], RUNS, id="chain", run_timeout=timedelta(seconds=60))
        await burst(case, handle)
        runs, recorded = 0, 0
        run_id = handle.result_run_id
        while run_id:
            runs += 1
            events = (await case.client.get_workflow_handle("chain", run_id=run_id).fetch_history()).events
            recorded += len(attributes(events, WorkflowExecutionSignaled))
            run_id = getattr(events[-1].attributes, "new_execution_run_id", "")
        assert runs == RUNS and recorded == len(await handle.result())
