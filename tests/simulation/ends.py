"""What came of each program of a simulation, for the comparison with another simulation of the same programs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from stepwell.api import events as e
from stepwell.api.failures import ApplicationFailureInfo

from tests.simulation.chain_rules import first_of
from tests.simulation.ledger import Ledger
from tests.simulation.model import RunRecord
from tests.simulation.other_workflows import WORKFLOW_TYPE


@dataclass(frozen=True)
class End:
    """A run that ended by itself and is not followed by another one of its program; or that nothing came of it."""

    workflow_id: str
    program: Any
    status: str
    """Empty for a client's program of which no run ended by itself."""
    value: Any
    timed: bool
    """A timeout of the workflow cuts it and its activities, wherever it is then."""
    ended_by_client: bool


def ends_of(ledgers: list[Ledger], records: Iterable[RunRecord]) -> list[End]:
    """Of clients' workflows and of their children."""
    by_id = {ledger.workflow_id: ledger for ledger in ledgers}
    ends = []
    for record in records:
        begin = first_of(record)
        outcome = _outcome(record) if begin.workflow_type == WORKFLOW_TYPE else None
        if outcome is None:
            continue
        program = msgspec.json.decode(begin.input[0].data)
        ends.append(_end(record.key.workflow_id, program, *outcome, by_id.get(record.key.workflow_id)))
    without = by_id.keys() - {end.workflow_id for end in ends}
    return ends + [_end(name, by_id[name].program.root, "", None, by_id[name]) for name in sorted(without)]


def _end(workflow_id: str, program: Any, status: str, value: Any, ledger: Ledger | None) -> End:
    timed = ledger is not None and bool(ledger.run_timeout or ledger.execution_timeout)
    by_client = ledger is not None and (ledger.cancel_sent or ledger.terminate_sent)
    return End(workflow_id, program, status, value, timed, by_client)


def _outcome(record: RunRecord) -> tuple[str, Any] | None:
    match record.close_event and record.close_event.attributes:
        case e.WorkflowExecutionCompleted(result=result):
            return "COMPLETED", msgspec.json.decode(result[0].data)["value"]
        case e.WorkflowExecutionFailed(failure=failure, new_execution_run_id=""):
            info = failure.info
            return "FAILED", info.failure_type if isinstance(info, ApplicationFailureInfo) else repr(info)
        case _:
            return None
