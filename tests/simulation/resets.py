"""A client's resets, and what must be true of the runs that they make."""

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
from stepwell.api import events as e
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ResetType
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.events import HistoryEvent

from tests.simulation.chain_rules import first_of
from tests.simulation.ledger import Ledger
from tests.simulation.model import RunRecord
from tests.simulation.violation import Violation

Call = Callable[[Any, Any], Awaitable[Any]]
_TYPES = (ResetType.FIRST_WORKFLOW_TASK, ResetType.LAST_WORKFLOW_TASK)


async def reset_some(call: Call, random: Random, ledger: Ledger, pause: Callable[[float], Awaitable[None]]) -> None:
    """The newest run, open or closed, to its first or its last workflow task; some requests come twice."""
    for number in range(random.randint(1, 2)):
        await pause(60.0)
        request_id = f"{ledger.workflow_id}-reset-{number}"
        ledger.reset_requests.append(request_id)
        request = r.ResetWorkflowRequest(
            execution=WorkflowExecution(workflow_id=ledger.workflow_id),
            reset_type=random.choice(_TYPES),
            reason="once more",
            request_id=request_id,
        )
        for _ in range(random.choice([1, 1, 2])):
            try:
                answer = await call(o.RESET_WORKFLOW, request)
            except (InvalidArgument, NotFound):
                break  # it has no workflow task yet
            ledger.resets.append((request_id, answer.run_id))
            await pause(10.0)


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
        has = set(signals_of(record.events))
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
    bodies = [event.attributes for event in events if isinstance(event.attributes, e.WorkflowExecutionSignaled)]
    return [msgspec.json.decode(body.input[0].data, type=str) for body in bodies]
