"""What was promised to a client of the simulation, for the verdict."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from stepwell.api.payloads import ENCODING, ENCODING_JSON, Payload
from stepwell.api.updates import UpdateOutcome

from tests.simulation.programs import Program


@dataclass
class Ledger:
    """What one client asked for and what it was told."""

    workflow_id: str
    program: Program
    task_timeout: float
    run_timeout: float | None = None
    execution_timeout: float | None = None
    start_delay: float | None = None
    may_restart: bool = False
    """Other runs of the id may follow the first one, also over it."""
    start_requests: list[str] = field(default_factory=list)
    started: dict[str, str] = field(default_factory=dict)
    """Run id by request id, for starts that were acknowledged as having made the run."""
    signals_sent: list[str] = field(default_factory=list)
    signals_acknowledged: list[str] = field(default_factory=list)
    cancel_sent: bool = False
    terminate_sent: bool = False
    joined: list[str] = field(default_factory=list)
    """Runs that a start said were open already."""
    query_answers: list[tuple[str, list[str]]] = field(default_factory=list)
    """Run id and the signals that the workflow said it had."""
    signalled_runs: list[tuple[str, str]] = field(default_factory=list)
    """Run that was said to have a signal that came with a start, and the signal."""
    reset_requests: list[str] = field(default_factory=list)
    resets: list[tuple[str, str]] = field(default_factory=list)
    """Request id and the run that it was said to have made."""
    updates: dict[str, str] = field(default_factory=dict)
    """Kind by update id."""
    update_ends: list[tuple[str, str, UpdateOutcome]] = field(default_factory=list)
    """Run, update id and what was said of its end, for each time that it was said."""
    finished: bool = False


def payload(value: Any) -> Payload:
    return Payload(metadata={ENCODING: ENCODING_JSON}, data=msgspec.json.encode(value))
