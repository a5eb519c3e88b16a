"""What ``stepwell.workflow`` talks to while workflow code runs: one run's clock, randomness, commands, conditions and
handlers.

Found through the running event loop, so it belongs to the code that asks, whichever thread that is.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.commands import ScheduleActivityTask
from ..api.common import UserMetadata
from ..api.failures import Failure
from ..api.payloads import Payload, Payloads
from ..converter.data_converter import DataConverter
from ..converter.payload_converter import PayloadConverter
from ..converter.signatures import CallableSignature
from ..exceptions import FailureError
from ..workflow.definition import WorkflowDefinition
from .changes import Changes
from .errors import Evicted, NotInWorkflowError, ReadOnlyContextError
from .flags import LogicFlags
from .handlers import Handlers
from .local_activities import LocalActivities
from .loop import DeterministicLoop
from .machines.activity import ActivityCancellationType, ActivityHandle, ActivityMachine
from .machines.command import Ask
from .machines.external import ExternalAsk
from .machines.timer import TimerCancellation, TimerMachine
from .randomness import Randomness
from .side_effects import SideEffects
from .updates import Updates

if TYPE_CHECKING:
    from ..workflow.info import Info
    from ..workflow.interceptors import WorkflowInboundInterceptor, WorkflowOutboundInterceptor
    from ..workflow.metrics import MetricRecorder
    from .machines.child import ChildMachine

R = TypeVar("R")
_EPOCH = datetime.fromtimestamp(0, UTC)


def current_runtime() -> "WorkflowRuntime":
    """The runtime of the workflow whose code runs now. Raises :class:`NotInWorkflowError` outside of workflow code."""
    loop = asyncio._get_running_loop()
    if type(loop) is not DeterministicLoop:
        raise NotInWorkflowError("not in workflow code: functions of stepwell.workflow work only while a workflow runs")
    owner = loop.owner
    assert isinstance(owner, WorkflowRuntime)
    return owner


def runtime_or_none() -> "WorkflowRuntime | None":
    """As :func:`current_runtime`, but None outside of workflow code."""
    loop = asyncio._get_running_loop()
    if type(loop) is DeterministicLoop:
        owner = loop.owner
        assert isinstance(owner, WorkflowRuntime)
        return owner
    return None


class WorkflowRuntime:
    """State of one run between and during activations."""

    def __init__(self, definition: WorkflowDefinition, converter: DataConverter, task_queue: str) -> None:
        self.definition = definition
        self.converter = converter
        self.payload_converter: PayloadConverter = converter.payload_converter
        self.default_task_queue = task_queue
        self.loop: DeterministicLoop = DeterministicLoop(self)  # type: ignore[abstract] # refusals are set by name
        self.flags = LogicFlags()
        self.last_completion_result: Payloads = ()
        self.continued_failure: Failure | None = None
        """What earlier runs of the chain left (PM-29)."""
        self.handlers = Handlers(self, definition)
        self.updates = Updates(self, definition)
        self.failure_types = definition.failure_exception_types
        """Further exceptions that fail the workflow, and not only its task (ER-04)."""
        self.info: Info
        self.inbound: WorkflowInboundInterceptor | None = None
        """The outermost interceptor of each direction; None when there are none."""
        self.outbound: WorkflowOutboundInterceptor | None = None
        self.metric_recorder: MetricRecorder | None = None
        self.memo: dict[str, Payload] = {}
        self.search_attributes: dict[str, Payload] = {}
        self.current_details = ""
        self.extern_functions: Mapping[str, Callable[..., Any]] = {}
        self.now: datetime = _EPOCH
        self.started_at: datetime = _EPOCH
        self.replaying = False
        self.read_only = ""
        """What runs that must not change anything, in words; else empty."""
        self.evicting = False
        self.unguarded = 0
        self.failure: BaseException | None = None
        """First thing that went wrong outside of the main function; ends the activation."""
        self.cancel_requested = False
        self.cancellation_reason: str | None = None
        self.asks: list[Ask] = []
        self.activities: dict[int, ActivityMachine] = {}
        """Pending, by scheduled event id."""
        self.children: dict[int, ChildMachine] = {}
        """Without an end, and what else was asked of other workflows without an answer: by initiated event id."""
        self.external: dict[int, ExternalAsk] = {}
        self.timers: dict[str, TimerMachine] = {}
        self._timers_by_handle: dict[asyncio.TimerHandle, TimerMachine] = {}
        self._conditions: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._next_activity_id = 1
        self._next_timer_id = 1
        self.next_timer_metadata: UserMetadata | None = None
        """For the timer that is started next, in the same breath: asyncio's own functions start it."""
        self.changes = Changes(self)
        self.local = LocalActivities(self)
        self.side_effects = SideEffects(self)
        self.randomness = Randomness()

    def advance(self, time: datetime) -> None:
        """Workflow time goes on to ``time``, and never back."""
        if time > self.now:
            self.now = time
        self.loop.seconds = (self.now - self.started_at).total_seconds()

    # --- commands --------------------------------------------------------------------------------------------------

    def refuse_in_query(self, what: str) -> None:
        """Raises unless code may change something now."""
        if self.evicting:
            raise Evicted
        if self.read_only:
            raise ReadOnlyContextError(f"{what} is not possible in {self.read_only}, which only reads")

    def ask(self, ask: Ask) -> None:
        """Add a command, in the order of the calls."""
        self.asks.append(ask)

    def drop(self, ask: Ask) -> None:
        """Take back a command of this workflow task."""
        ask.dropped = True

    def next_activity_id(self) -> str:
        """Ids count from 1 in each run."""
        number = self._next_activity_id
        self._next_activity_id = number + 1
        return str(number)

    def start_activity(
        self,
        command: ScheduleActivityTask,
        signature: CallableSignature,
        cancellation_type: ActivityCancellationType,
    ) -> ActivityHandle[Any]:
        """Ask for an activity."""
        machine = ActivityMachine(self, command, signature, cancellation_type)
        self.asks.append(machine)
        return machine.handle

    def start_timer(self, handle: asyncio.TimerHandle, seconds: float) -> None:
        """Of the event loop: a delay above zero. Below a microsecond counts as one."""
        timer_id = str(self._next_timer_id)
        self._next_timer_id += 1
        length = max(timedelta(seconds=round(seconds, 6)), timedelta(microseconds=1))
        metadata, self.next_timer_metadata = self.next_timer_metadata, None
        timer = TimerMachine(timer_id, length, handle, metadata)
        self.timers[timer_id] = timer
        self._timers_by_handle[handle] = timer
        handle._scheduled = True  # type: ignore[attr-defined]
        self.asks.append(timer)

    def cancel_timer(self, handle: asyncio.TimerHandle) -> None:
        """Of the event loop: a delay that nobody waits for any more."""
        timer = self._timers_by_handle.pop(handle, None)
        if timer is None:
            return
        del self.timers[timer.timer_id]
        if timer.recorded:
            self.ask(TimerCancellation(timer.timer_id))
        else:
            self.drop(timer)

    def timer_fired(self, timer_id: str) -> None:
        """A recorded timer is due."""
        timer = self.timers.pop(timer_id, None)
        if timer is not None:
            del self._timers_by_handle[timer.handle]
            self.loop.timer_fired(timer.handle)

    # --- conditions ------------------------------------------------------------------------------------------------

    def add_condition(self, predicate: Callable[[], bool]) -> "asyncio.Future[None]":
        """A future that is done once the predicate is true with nothing else to run (PM-13)."""
        future: asyncio.Future[None] = self.loop.create_future()
        self._conditions.append((predicate, future))
        return future

    def check_conditions(self) -> bool:
        """Wake who waits for what has become true, oldest first. False when there was nobody."""
        if not self._conditions:
            return False
        waiting, self._conditions = self._conditions, []
        woken = False
        for predicate, future in waiting:
            if future.done():
                continue
            try:
                holds = predicate()
            except BaseException as error:
                future.set_exception(error)
                woken = True
                continue
            if holds:
                future.set_result(None)
                woken = True
            else:
                self._conditions.append((predicate, future))
        return woken

    # --- failures of code outside of the main function ---------------------------------------------------------------

    def code_failed(self, error: BaseException) -> None:
        """A handler or callback raised; whether the run or the workflow task fails is decided by its type (ER-03)."""
        if self.failure is None and not self.evicting:
            self.failure = error
            self.loop.stop()

    def is_failure(self, error: BaseException) -> bool:
        """True for failures, timeouts, cancellations, and groups of nothing else; anything else is a bug (WC-21)."""
        if isinstance(error, BaseExceptionGroup):
            return isinstance(error, self.failure_types) or all(map(self.is_failure, error.exceptions))
        return isinstance(error, (FailureError, TimeoutError, asyncio.CancelledError, *self.failure_types))

    def to_failure(self, error: BaseException) -> Failure:
        """The record of an exception. Making it may read source files, which is not the workflow's doing."""
        self.unguarded += 1
        try:
            return self.converter.to_failure(error)
        finally:
            self.unguarded -= 1

    def callback_failed(self, context: dict[str, Any]) -> None:
        """Of the event loop: an exception that nobody caught."""
        error = context.get("exception")
        if self.evicting or not isinstance(error, BaseException):
            return
        if "future" in context or "task" in context:
            self.handlers.warn(f"{context.get('message', 'an exception was never retrieved')}: {error!r}")
            return  # as with asyncio, it ends nothing
        self.code_failed(error)
