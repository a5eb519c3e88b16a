"""What a namespace is: its names, its state, how long it keeps what has ended, and how much it may ask for (MT-01 to
MT-06)."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from ._struct import Record
from .common import WorkflowExecution
from .enums import NamespaceState


class NamespaceLimits(Record, frozen=True, kw_only=True):
    """How much the callers of a namespace may ask of one server process; None: as the installation has it."""

    requests_per_second: float | None = None
    """Of all calls; twice as many at once. What is more important passes first (MT-06)."""
    starts_per_second: float | None = None
    """Of calls that may start a workflow; twice as many at once."""
    dispatches_per_second: float | None = None
    """Of workflow tasks and activities that are handed to workers."""
    visibility_per_second: float | None = None
    """Of lists and counts."""
    concurrent_long_polls: int | None = None
    """Calls that are held open at the same time, of each operation."""
    max_payload_bytes: int | None = None
    """Of one input, signal, query, update, result, failure, heartbeat, marker or memo; at most the API's own limit."""
    max_pending_activities: int | None = None
    max_pending_children: int | None = None
    max_pending_signals: int | None = None
    max_pending_cancels: int | None = None
    """What one run may have under way: the last two to other workflows. At most the engine's own limits."""


class RemovalFailure(Record, frozen=True, kw_only=True):
    """A workflow of a deleted namespace that cannot be deleted, and why."""

    execution: WorkflowExecution
    message: str


class NamespaceInfo(Record, frozen=True, kw_only=True):
    name: str
    id: str
    """Of this namespace alone: one that is registered later under the same name has another."""
    state: NamespaceState = NamespaceState.REGISTERED
    description: str = ""
    owner_email: str = ""
    data: Mapping[str, str] = {}
    """Notes of whoever keeps it, by name."""
    retention: timedelta
    """How long a run is kept once it is closed."""
    limits: NamespaceLimits = NamespaceLimits()
    search_attributes: Mapping[str, str] = {}
    """Types by name."""
    implicit_search_attributes: bool = True
    """A start with an attribute that nobody registered registers it, with the type of its value."""
    callers_allowed: tuple[str, ...] = ()
    """Namespaces whose workflows may start, signal, cancel and wait for workflows of this one (MT-11); ``*``: all."""
    created_at: datetime | None = None
    """None of the default namespace, until something of it is set."""
    unremoved: int = 0
    """Of a deleted one: workflows that could not be deleted when it was tried last. They are tried again."""
    removal_failures: tuple[RemovalFailure, ...] = ()
    """The first of those, with their causes."""
    archival: bool = False
    """Histories of runs that close in it are archived, and found there when their retention is over (OP-06)."""
