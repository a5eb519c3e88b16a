"""What history needs from the outside. Small, asyncio, shaped by atomicity; one contract suite for all adapters."""

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from stepwell.api.common import Priority
from stepwell.api.events import HistoryEvent
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.requests import PollerInfo, QueryWorkflowRequest

from ..matching.queue_name import QueueName
from ..visibility.attributes import ValueType
from ..visibility.filters import Filter, Query
from ..visibility.pages import Counted, Page, Position
from .activity_item import ActivityItem
from .commit import Commit, ExecutionKey
from .task_tokens import ActivityToken


class Conflict(Exception):
    """The seq is taken; ``existing`` is what took it. Same nonce means that it is the caller's own write."""

    def __init__(self, existing: Commit) -> None:
        super().__init__(f"commit {existing.seq} of {existing.workflow_id!r} exists")
        self.existing = existing


class VersionConflict(Exception):
    """The activity item is not at the expected version; ``existing`` is what is there."""

    def __init__(self, existing: ActivityItem | None) -> None:
        super().__init__("the activity item has changed")
        self.existing = existing


class SequenceGap(Exception):
    """Nothing was written: the commit before this one is not there. Whoever writes knows an outdated head."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"commit {seq} would leave a gap: there is no commit {seq - 1}; read the head again")


class StateTooLarge(Exception):
    """Nothing was written: the state of an open run has more bytes than the store takes (DA-10)."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"state size exceeds limit: it would have {size} bytes, the most is {limit}")


class StoreUnavailable(Exception):
    """The store cannot write or read now (disk full, throttled, closed). What was acknowledged is intact; retry."""


class StoreRefused(Exception):
    """The store refuses a call, and will again: until somebody repairs what ``str(error)`` names, such as a permission,
    a key or a table (``curable``), or for ever, since the call itself is wrong. What was acknowledged is intact."""

    curable = False


class EventsPage(NamedTuple):
    """Events of one run in order, and the seq of the last commit read (to go on from)."""

    events: tuple[HistoryEvent, ...]
    last_seq: int


class Marker(NamedTuple):
    value: bytes
    expires_at: datetime
    """From then on it counts for nothing, whether or not it was deleted yet."""


class ExecutionLog(Protocol):
    """Commit log, activity items and markers. Every write is durable when its call returns."""

    async def head(self, key: ExecutionKey) -> Commit | None:
        """The newest commit (strong read), of whatever run; None when the id was never used or has expired."""
        ...

    def append(self, commit: Commit, *, arm: datetime | None = None) -> Awaitable[None]:
        """Put-if-absent, right behind the newest commit. Arms the deadline first when ``arm`` is set. Raises Conflict,
        SequenceGap, StateTooLarge, StoreUnavailable, some of them before it is awaited."""
        ...

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None: ...

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        """Events of the run in commits after ``after_seq``: whole commits, at least one when there is one, and no
        further commit once ``limit`` events are reached. ``last_seq`` is ``after_seq`` when there is none. The last
        events of a run may be in the commit that opens the next one (``Commit.closed``). From a negative ``after_seq``
        on, parts of the run's prefix come first, as if they were commits."""
        ...

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        """A part of the history that a reset run begins with, before the commit that opens the run: ``seq`` is from
        ``BEGINNING`` + 1 on. Read once the run is there, kept as long as the run; parts of a run that never came to be
        are deleted some day. Putting a part again changes nothing. Raises StoreUnavailable."""
        ...

    async def find_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        """The newest commit of that run, which may not be the newest of the id, and may be the one that opens the next
        run: ``Commit.state_of`` has the run's state."""
        ...

    async def get_activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None: ...

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        """Conditional on the stored version being ``item.version - 1`` (absent for version 1).
        Arms first. Raises VersionConflict, StoreUnavailable."""
        ...

    async def activities(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]
    ) -> list[ActivityItem]:
        """The items that exist among the given ones."""
        ...

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        """Put-if-absent; returns the marker that is there then, this one or an earlier one. One that has expired by
        ``now`` is replaced. Markers belong to the workflow id, not to a run. Raises StoreUnavailable."""
        ...

    async def get_marker(self, key: ExecutionKey, name: str) -> Marker | None:
        """What is there (strong read), possibly expired."""
        ...

    async def erase_run(self, key: ExecutionKey, run_id: str) -> None:
        """Erases a closed run that owes nothing more to others: from then on it is found no more, and all that is its
        own goes, but for the log's newest commit if that is one of its; of the newest run also the markers that were
        put for it. What another run shares with it stays with that one. May be repeated, and goes on where an earlier
        call broke off. Raises StoreUnavailable."""
        ...

    async def forget(self, key: ExecutionKey, seq: int) -> None:
        """Lets go what erased runs have left at the end of the log, whose newest commit is ``seq``: at once where
        nothing can be lost by it, else when it has expired. Nothing is done once another commit is there, or when
        another run is. Raises StoreUnavailable."""
        ...


class TimerIndex(Protocol):
    """Armed deadlines. A row is kept until ``fired``; the same deadline may be delivered more than once."""

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None: ...

    async def due(self, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        """Rows with a fire time at or before ``now``, oldest first."""
        ...

    async def next_fire(self) -> datetime | None:
        """Earliest armed time, None when nothing is armed."""
        ...

    async def fired(self, rows: Sequence[tuple[datetime, ExecutionKey]]) -> None:
        """The rows were handled (their re-arm is committed); they need not be delivered again."""
        ...


class VisibilityStore(Protocol):
    """The projection of RecordVisibility tasks (embedded: written with the commit itself) and of ``Commit.owes``."""

    async def project(self, commit: Commit) -> None:
        """Records what the commit's tasks say of its runs, unless a newer commit has. The feed calls it, in any order
        and more than once; where it is written with the commit there is nothing left to do."""
        ...

    async def remove(self, key: ExecutionKey, run_id: str, last: datetime) -> None:
        """The run was erased, whose log had its last event then. Lists show it no more, whatever is still projected of
        it; but again if it comes again, by an import. Raises StoreUnavailable."""
        ...

    @property
    def ordered_by(self) -> frozenset[str]:
        """Attributes of the system's own in whose order lists may be (VI-03)."""
        ...

    async def search(self, namespace: str, query: Query, *, after: Position | None, limit: int) -> Page:
        """Runs that satisfy the query, in its order, from behind ``after`` on. A page may be short, or empty, before
        the end: ``Page.reached`` says whether there may be more. Raises StoreUnavailable."""
        ...

    async def scan(self, namespace: str, filter_: Filter, *, after: Position | None, limit: int) -> Page:
        """As ``search``, in the order that costs least. Whoever is there from the first page to the last is found; one
        that closes in between may be found twice. Raises StoreUnavailable."""
        ...

    async def count(self, namespace: str, query: Query, *, after: Position | None) -> Counted:
        """How many there are, by value of ``query.group_by`` if it has one. Raises TooManyGroups, StoreUnavailable."""
        ...

    async def attribute_types(self, namespace: str) -> Mapping[str, ValueType]:
        """Custom search attributes of runs that are older than the registry of their types, where there may be such."""
        ...

    async def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        """Keys whose newest ``owes`` is true, in key order, behind ``after``: for an engine whose queues are lost with
        its process. None where queues outlive it; deadlines send again what is lost all the same."""
        ...


class Retention(Protocol):
    """Where a store deletes closed runs by itself once their time is over (else a loop calls ``Backend.sweep``)."""

    async def expire(self, commit: Commit) -> None:
        """The feed calls it behind each commit, once or more, in any order. Marks what the commit shows to be over: a
        run that it closed, or whose last debt it paid. Raises StoreUnavailable; then it is to be called again."""
        ...


class WorkflowTaskRef(NamedTuple):
    """A hint that a run has an outstanding workflow task; checked against the head before it is handed out."""

    key: ExecutionKey
    run_id: str
    attempt: int


class ActivityTaskRef(NamedTuple):
    """A hint that an activity attempt waits; the activity's item decides."""

    key: ExecutionKey
    run_id: str
    scheduled_event_id: int
    attempt: int


class QueryTaskRef(NamedTuple):
    """A hint that a query waits for an answer; it goes the way of the run's workflow tasks."""

    key: ExecutionKey
    run_id: str
    query_id: str


class QueryAnswer(NamedTuple):
    """What a worker says to a query, or (``again``) that a workflow task came in between: the run is to be looked at
    and asked anew."""

    result: Payloads = ()
    failure: Failure | None = None
    again: bool = False


class QueryBoard(Protocol):
    """Where who asks and who answers a query meet. Nothing of it is durable. Raises StoreUnavailable."""

    async def post(self, query_id: str, request: QueryWorkflowRequest, *, expires_at: datetime) -> None:
        """Somebody waits for an answer, until ``expires_at`` at the latest."""
        ...

    async def asked(self, query_id: str) -> QueryWorkflowRequest | None:
        """What is asked; None when it is answered, or nobody waits any more."""
        ...

    async def answer(self, query_id: str, answer: QueryAnswer) -> bool:
        """False when it is answered already, or nobody waits any more."""
        ...

    async def wait(self, query_id: str, seconds: float) -> QueryAnswer | None:
        """None after ``seconds`` without an answer, and at a stop."""
        ...

    async def remove(self, query_id: str) -> None:
        """Nobody waits any more."""
        ...

    def stop(self) -> None:
        """Ends all waits."""
        ...


class PollersSeen(Protocol):
    """Where the processes of an installation note for each other which workers poll. Raises StoreUnavailable."""

    async def note(self, name: QueueName, identity: str, at: datetime) -> None: ...

    async def pollers(self, name: QueueName) -> list[PollerInfo]:
        """Those that were noted within the last five minutes, in any order."""
        ...

    async def in_namespace(self, namespace: str, most: int) -> list[tuple[QueueName, PollerInfo]] | None:
        """The same of all queues of a namespace; None: there are more than ``most``, or so many notes to look through
        that nobody should wait for it."""
        ...

    async def note_called(self, name: QueueName, at: datetime) -> None:
        """The queue calls its workers. Noted for months, since they are silent as long as nothing happens."""
        ...

    async def is_called(self, name: QueueName) -> bool: ...


class Dispatcher(Protocol):
    """Where history sends hints (matching implements it). Repeats and losses are harmless; deadlines repair them."""

    async def offer_workflow_task(
        self,
        task_queue: str,
        ref: WorkflowTaskRef,
        prefer_worker: str = "",
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        """``prefer_worker``: worker key that has the run cached and goes first if it waits."""
        ...

    async def offer_activity_task(
        self,
        task_queue: str,
        ref: ActivityTaskRef,
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None: ...

    async def offer_query_task(self, task_queue: str, ref: QueryTaskRef, prefer_worker: str = "") -> None: ...

    def takes_eagerly(self, namespace: str, task_queue: str) -> bool:
        """Whether activities of that queue may go to a worker past the queue. Not while it has a rate limit (AC-23)."""
        ...

    def push_cancel(self, task_queue: str, worker_key: str, token: ActivityToken) -> None:
        """Tells the worker that runs this attempt at once, if it can be reached (AC-20)."""
        ...
