"""What must be true when everything has ended: each promise kept, each result right, each history replayable."""

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from stepwell.api import events as e
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import HistoryEvent
from stepwell.replay.errors import NondeterminismError
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer, ReplayFailedError

from stepwell_server.history.commit import BEGINNING
from tests.simulation.acceptance import accepts
from tests.simulation.chain_rules import chain_up_to, check_link, first_of
from tests.simulation.history_rules import Violation
from tests.simulation.ledger import Ledger
from tests.simulation.model import RunRecord
from tests.simulation.other_workflows import WORKFLOW_TYPE
from tests.simulation.resets import check_resets, counts_of_signals, signals_of
from tests.simulation.updaters import check_updates
from tests.simulation.workflows import SimulatedProgram

if TYPE_CHECKING:
    from tests.simulation.world import World

_decode = msgspec.json.decode
_BY_MESSAGES = (
    WorkflowTaskFailedCause.UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.UNHANDLED_UPDATE,
    WorkflowTaskFailedCause.FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.RESET_WORKFLOW,
)
"""Causes that need no fault of anybody: messages came in at the wrong moment, or somebody reset the run."""


async def check_everything(world: "World") -> None:
    await _check_store(world)
    await _check_replay(world)
    for ledger in world.ledgers:
        records = [record for record in world.model.runs.values() if record.key.workflow_id == ledger.workflow_id]
        try:
            check_ledger(ledger, records)
            for record in records:
                check_run(ledger, record, chain_up_to(record, records))
        except Violation as violation:
            raise Violation(f"{ledger.workflow_id}: {violation}") from None
    for record in world.model.runs.values():
        if "/" in record.key.workflow_id:
            _check_tasks(record)


async def _check_store(world: "World") -> None:
    """What the store gives is what was written (invariant 1)."""
    for (key, run_id), record in world.model.runs.items():
        page = await world.disk.do(world.disk.store.read_events(key, run_id, BEGINNING, 1_000_000))
        if list(page.events) != ([] if run_id in world.model.deleted else record.events):
            raise Violation(f"{key.workflow_id}: the store has lost or changed events of run {run_id} (invariant 1)")


async def _check_replay(world: "World") -> None:
    """Today's code decides again what every history says it decided (invariant 2)."""
    replayer = Replayer(workflows=[SimulatedProgram])
    for (key, run_id), record in world.model.runs.items():
        if first_of(record).workflow_type != WORKFLOW_TYPE:
            continue
        try:
            await replayer.replay_workflow(WorkflowHistory(key.workflow_id, record.events))
        except (NondeterminismError, ReplayFailedError) as error:
            raise Violation(f"run {run_id} does not replay (invariant 2): {error}") from error


def check_ledger(ledger: Ledger, records: list[RunRecord]) -> None:
    """What was acknowledged is in the histories, once; what was not is there once at most."""
    by_run = {record.run_id: record for record in records}
    _check_starts(ledger, records, by_run)
    check_resets(ledger, records)
    for before, after in pairwise(records):
        if not after.was_reset:
            check_link(before, after)
    _check_signals(ledger, counts_of_signals(records))
    check_updates(ledger)
    for run_id, signal_id in ledger.signalled_runs:
        chain = [record for record in records if first_of(record).first_execution_run_id == _chain_of(by_run, run_id)]
        if not any(signal_id in signals_of(record.events) for record in chain):
            raise Violation(f"run {run_id} was said to have signal {signal_id}, which is elsewhere")
    for run_id, answer in ledger.query_answers:
        if answer != signals_of(chain_up_to(by_run[run_id], records))[: len(answer)]:
            raise Violation(f"a query of run {run_id} was told of signals {answer}, which its history does not have")


def _chain_of(by_run: dict[str, RunRecord], run_id: str) -> str:
    if run_id not in by_run:
        raise Violation(f"a signal was said to be in run {run_id}, which does not exist")
    return first_of(by_run[run_id]).first_execution_run_id


def _check_starts(ledger: Ledger, records: list[RunRecord], by_run: dict[str, RunRecord]) -> None:
    for request_id, run_id in ledger.started.items():
        if run_id not in by_run:
            raise Violation(f"start {request_id} was acknowledged with run {run_id}, which does not exist")
        made_by = first_of(by_run[run_id]).request_id
        if made_by != request_id:
            raise Violation(f"start {request_id} was told that it made run {run_id}, but {made_by} did")
    for run_id in ledger.joined:
        if run_id not in by_run:
            raise Violation(f"a start was told that run {run_id} is open, which does not exist")
    heads = [record for record in records if not first_of(record).continued_execution_run_id and not record.was_reset]
    if len(heads) > 1 and not ledger.may_restart:
        raise Violation(f"there are {len(heads)} chains of runs, though no start allowed a second one")
    made_by_all = [first_of(record).request_id for record in heads]
    if len(set(made_by_all)) != len(made_by_all) or not set(made_by_all) <= set(ledger.start_requests):
        raise Violation(f"runs were made by the requests {made_by_all}, asked for were {ledger.start_requests}")


def _check_signals(ledger: Ledger, recorded: Counter[str]) -> None:
    for signal_id in ledger.signals_acknowledged:
        if recorded[signal_id] != 1:
            raise Violation(f"signal {signal_id} was acknowledged and is {recorded[signal_id]} times in the history")
    for signal_id in ledger.signals_sent:
        if recorded[signal_id] > 1:
            raise Violation(f"signal {signal_id} is {recorded[signal_id]} times in the history")


def check_run(ledger: Ledger, record: RunRecord, chain: list[HistoryEvent]) -> None:
    """The run ended as its program and its clients allow."""
    close = record.close_event
    if close is None:
        raise Violation(f"run {record.run_id} is still open")
    match close.attributes:
        case e.WorkflowExecutionCompleted(result=result):
            _check_result(ledger, chain, _decode(result[0].data))
        case e.WorkflowExecutionFailed() if ledger.program.attempts:
            _check_failure(ledger, record)
        case e.WorkflowExecutionContinuedAsNew():
            _demand(ledger.program.runs > 1, "continued as new, which its program does not do")
        case e.WorkflowExecutionCanceled():
            _demand(ledger.cancel_sent, "was canceled, though nobody asked for it")
        case e.WorkflowExecutionTerminated():
            _demand(
                ledger.terminate_sent or ledger.may_restart or bool(ledger.reset_requests),
                "was terminated, though nobody asked for it",
            )
        case e.WorkflowExecutionTimedOut():
            _demand(bool(ledger.run_timeout or ledger.execution_timeout), "timed out without a timeout")
        case other:
            raise Violation(f"ended with {other!r}")
    if not ledger.program.buggy:
        _check_tasks(record)


def _check_failure(ledger: Ledger, record: RunRecord) -> None:
    """A run that fails is tried again until there are enough attempts."""
    close, attempt = record.close_event, first_of(record).attempt
    last = close is None or not getattr(close.attributes, "new_execution_run_id", "")
    _demand(attempt <= ledger.program.failures, f"attempt {attempt} failed, which its program does not do")
    if last and attempt < ledger.program.attempts and ledger.execution_timeout is None:
        raise Violation(f"attempt {attempt} failed, and was not followed by another")


def _check_tasks(record: RunRecord) -> None:
    for event in record.events:
        body = event.attributes
        if isinstance(body, e.WorkflowTaskFailed) and body.cause not in _BY_MESSAGES:
            raise Violation(f"workflow task failed with {body.cause}: {body.failure}")


def _check_result(ledger: Ledger, chain: list[HistoryEvent], result: Any) -> None:
    problem = accepts(ledger.program.root, result["value"])
    # A run that follows one of a reset asks again for children of runs that the reset has left behind.
    asks_again = ledger.may_restart or (bool(ledger.reset_requests) and ledger.program.runs > 1)
    if not asks_again and "taken" in repr(result["value"]) and "shared/" not in repr(ledger.program.root):
        problem = f"a child's id was taken: {result['value']}"
    if "'cut'" in repr(result["value"]) and not ledger.reset_requests:
        problem = f"a child ended with its parent, which goes on: {result['value']}"
    if (
        problem and ledger.run_timeout is None and ledger.execution_timeout is None
    ):  # a run's timeout caps its activities' (AC-03)
        raise Violation(f"wrong result: {problem}")
    signals = signals_of(chain)
    if result["signals"] != signals:
        raise Violation(f"the workflow got signals {result['signals']}, its histories have {signals} (invariant 5)")
    taken = [
        event.attributes.protocol_instance_id
        for event in chain
        if isinstance(event.attributes, e.WorkflowExecutionUpdateAccepted)
    ]
    if result["updated"] != taken:
        raise Violation(f"the workflow took updates {result['updated']}, its histories have {taken}")


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)
