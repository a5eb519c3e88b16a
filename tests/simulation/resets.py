"""A client's resets, and what must be true of the runs that they make."""

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace
from stepwell.api import events as e
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ResetType
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.events import HistoryEvent

from tests.simulation.chain_rules import chain_up_to, first_of
from tests.simulation.ledger import Ledger, payload
from tests.simulation.model import RunRecord
from tests.simulation.violation import Violation

Call = Callable[[Any, Any], Awaitable[Any]]
_TASK_ENDS = (e.WorkflowTaskCompleted, e.WorkflowTaskFailed, e.WorkflowTaskTimedOut)
_TYPES = (ResetType.FIRST_WORKFLOW_TASK, ResetType.LAST_WORKFLOW_TASK)


class Resetter:
    """``call`` repeats what gets no answer; ``pause`` is some time."""

    def __init__(self, call: Call, random: Random, ledger: Ledger, pause: Callable[[float], Awaitable[None]]) -> None:
        self._call = call
        self._random = random
        self._ledger = ledger
        self._pause = pause

    async def reset_some(self) -> None:
        """Some requests come twice."""
        for number in range(self._random.randint(1, 2)):
            await self._pause(60.0)
            request = await self._request(number)
            for _ in range(self._random.choice([1, 1, 2])):
                try:
                    answer = await self._call(o.RESET_WORKFLOW, request)
                except (InvalidArgument, NotFound):
                    break  # it has no workflow task yet, or is the first of its chain
                self._ledger.resets.append((request.request_id, answer.run_id))
                self._ledger.signals_acknowledged += [
                    f"p{number}"
                    for _ in request.post_reset_operations
                    if f"p{number}" not in self._ledger.signals_acknowledged
                ]
                await self._pause(10.0)

    async def _request(self, number: int) -> r.ResetWorkflowRequest:
        """Mostly of the newest run, open or closed, to its first or its last workflow task."""
        random, ledger = self._random, self._ledger
        request_id = f"{ledger.workflow_id}-reset-{number}"
        ledger.reset_requests.append(request_id)
        run_id = random.choice([*ledger.started.values(), *(run for _, run in ledger.resets)])
        request = r.ResetWorkflowRequest(
            execution=WorkflowExecution(workflow_id=ledger.workflow_id, run_id=run_id if random.random() < 0.3 else ""),
            reset_type=random.choice(_TYPES),
            reason="once more",
            request_id=request_id,
        )
        if ledger.program.runs > 1 and random.random() < 0.2:
            request = replace(request, reset_type=ResetType.LAST_CONTINUED_AS_NEW)
        elif random.random() < 0.3:
            request = replace(request, reset_type=None, workflow_task_finish_event_id=await self._an_event(request))
        if random.random() < 0.2:
            ledger.signals_sent.append(f"p{number}")
            signal = r.PostResetSignal(signal_name="note", input=(payload(f"p{number}"),))
            request = replace(request, post_reset_operations=(r.PostResetOperation(signal_workflow=signal),))
        return request

    async def _an_event(self, request: r.ResetWorkflowRequest) -> int:
        """At which a workflow task ends."""
        asked = r.GetHistoryRequest(execution=request.execution, maximum_page_size=100)
        answer = await self._call(o.GET_HISTORY, asked)
        ends = [event.event_id for event in answer.events if isinstance(event.attributes, _TASK_ENDS)]
        return self._random.choice(ends) if ends else 3


def check_resets(ledger: Ledger, records: list[RunRecord]) -> None:
    """Each request made one run, which has every signal that runs of its chain had before."""
    made = [record for record in records if record.was_reset]
    if len(made) > len(ledger.reset_requests):
        raise Violation(f"{len(made)} runs are from resets, but {len(ledger.reset_requests)} were asked for")
    runs: dict[str, str] = {}
    for request_id, run_id in ledger.resets:
        if runs.setdefault(request_id, run_id) != run_id or run_id not in {record.run_id for record in made}:
            raise Violation(f"reset {request_id} was said to have made run {run_id}; there are {runs}")
    for record in made:
        has = set(signals_of(chain_up_to(record, records)))
        for before in _taken_over(record, records):
            if not has.issuperset(signals_of(before.events)):
                raise Violation(f"the reset to run {record.run_id} lost signals of run {before.run_id}")


def _taken_over(record: RunRecord, records: list[RunRecord]) -> list[RunRecord]:
    """The run that the reset goes on from, and all between in its chain."""
    bases = [getattr(event.attributes, "base_run_id", "") for event in record.events]
    base = next(run_id for run_id in reversed(bases) if run_id)
    names = [other.run_id for other in records]
    between = records[names.index(base) : names.index(record.run_id)]
    chain = first_of(record).first_execution_run_id
    return [other for other in between if first_of(other).first_execution_run_id == chain]


def counts_of_signals(records: list[RunRecord]) -> Counter[str]:
    """How often each was recorded. A reset records again what runs of its chain before it had; that is still once."""
    counts: Counter[str] = Counter()
    had: dict[str, set[str]] = {}
    for record in records:
        chain = had.setdefault(first_of(record).first_execution_run_id, set())
        signals = signals_of(record.events)
        again = chain if record.was_reset else set()
        counts.update(
            signal for index, signal in enumerate(signals) if signal not in again or signal in signals[:index]
        )
        chain.update(signals)
    return counts


def signals_of(events: list[HistoryEvent]) -> list[str]:
    """Less those of the SDK itself, as sessions send them."""
    signals = [event.attributes for event in events if isinstance(event.attributes, e.WorkflowExecutionSignaled)]
    return [msgspec.json.decode(body.input[0].data, type=str) for body in signals if body.signal_name == "note"]
