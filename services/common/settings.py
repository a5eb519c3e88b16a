"""Settings of the engine: every number an operator may change, with its default and where the default comes from."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from stepwell.api import limits


class ProcessKind(Enum):
    """What the process that an engine lives in may count on."""

    SOLE_OWNER = "sole owner"
    """It is the store's only writer (embedded), so what it wrote last is what a strong read returns."""

    ONE_OF_MANY = "one of many"
    """Others write to the store as well. It stays, so it may wait and remember."""

    ONE_CALL = "one call"
    """A function: it stands still between calls, so nothing that a call began may be left to a timer or a background
    task, nothing it remembers is counted on, and no call waits. What a commit owes is handed on by the feed."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Durations are wall time. Defaults name the feature row or design section they follow."""

    server_version: str = ""
    """Empty: that of the installed distribution."""

    database: str = ""
    """Where data is kept, for people (GetSystemInfo)."""

    default_retention: timedelta = limits.DEFAULT_RETENTION
    archive_after: timedelta = limits.ARCHIVE_AFTER
    """Of a namespace that is archived: how long behind its close a run is archived (OP-06)."""

    require_registered_namespaces: bool = False
    """Calls in a namespace that nobody registered are refused; else it is there with its first call."""

    minimum_between_runs: timedelta = timedelta(0)
    """A start of a workflow id is refused for this long behind the beginning of its newest run (LC-06). Zero: never."""

    id_starts_per_second: float = 0.0
    """Of runs of one workflow id, as calls start them, with two seconds' worth at once (LC-06). Zero: no limit."""

    callback_addresses: tuple[str, ...] = ()
    """To which completion callbacks may go (LC-10), such as ``https://*.example.com``. None: nowhere."""

    process: ProcessKind = ProcessKind.SOLE_OWNER
    look_again: timedelta = timedelta(milliseconds=500)
    """Where others write to the store as well: how often a call that waits reads what they have done."""

    sweeps: bool = True
    """It fires deadlines itself and, after a start, offers again what its queues held. Else a sweeper of the
    installation calls ``Engine.fire``, and queues are not this process's to lose."""

    hands_on: bool | None = None
    """Whether it does what its commits owe, right behind the write; None: as ``process`` has it. A function that fires
    deadlines does so too: they are what brings runs on when the feed does not."""

    poll_timeout: timedelta = limits.POLL_TIMEOUT
    """Longest wait of one long poll (TQ-06). Zero: every call that would wait is answered at once, and its caller asks
    again."""

    query_timeout: timedelta = limits.QUERY_TIMEOUT
    query_no_poller: timedelta = limits.QUERY_NO_POLLER
    query_reconnect_grace: timedelta = timedelta(seconds=2)
    """After the engine starts, workers get this long to reconnect before a query is refused for want of a poller."""

    cached_executions: int = 4_096
    cached_bytes: int = 64 * 1024 * 1024
    """Bounds of the cache of newest states and of events that the next workflow task needs."""

    cached_scheduled_bytes: int = 16 * 1024 * 1024
    """Bound of the cache of commits that scheduled queued activities."""

    conflict_attempts: int = 12
    """Reload-and-step-again rounds before a request is answered with Unavailable."""

    timer_concurrency: int = 256
    """Deadlines that are handled at the same time; they share the store's group commits."""

    liveness_interval: timedelta = timedelta(seconds=1)
    """How often holders of leases on this machine are checked (ADR 0004)."""

    crossing_concurrency: int = 64
    """Workflows that are told at the same time what other workflows ask of them."""

    archive_concurrency: int = 8
    """Workflows whose closed runs are archived at the same time."""

    recovery_concurrency: int = 64
    stop_grace: timedelta = timedelta(seconds=5)
    """How long a stop waits for requests that are being committed."""

    @property
    def sole_owner(self) -> bool:
        return self.process is ProcessKind.SOLE_OWNER

    @property
    def hands_on_itself(self) -> bool:
        return self.stays if self.hands_on is None else self.hands_on

    @property
    def stays(self) -> bool:
        """Timers and background tasks of this process go on between two calls."""
        return self.process is not ProcessKind.ONE_CALL


def at_most(asked: timedelta | None, longest: timedelta) -> float:
    """Seconds that a call may wait: what it asked for, or ``longest``, which it also may not exceed."""
    return (longest if asked is None or asked > longest else asked).total_seconds()


def rate_of(text: str) -> float | None:
    """Of ``id_starts_per_second``, as operators write it; None: it is none."""
    try:
        rate = float(text)
    except ValueError:
        return None
    within = limits.MIN_ID_STARTS_PER_SECOND <= rate <= limits.MAX_ID_STARTS_PER_SECOND
    return rate if within or rate == 0 else None
