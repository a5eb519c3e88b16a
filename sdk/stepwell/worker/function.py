"""A worker that is an AWS Lambda function: called with messages of the task queue, it works on what they hint at.

The worker is the usual one, kept with its cached runs for the life of the process, on a loop that runs only during a
call. So a call lasts until nothing is in hand any more: fused steps and eager activities go on within it. When its time
is nearly over the worker is shut down as any other is (WC-32), and the next call begins with a new one.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any, NamedTuple, TypedDict, Unpack

from ..api.errors import NotFound, Unavailable
from ..api.operations import GET_TASK_SOURCES
from ..api.requests import GetTaskSourcesRequest, WorkerInfo
from ..client import Client
from ..client.interceptors import Interceptor as ClientInterceptor
from ..converter import DataConverter
from ..replay.changes import PatchActivationInput
from ..transport import Transport
from ..transport.address import open_transport
from ..transport.event_fed import ACTIVITY, WORKFLOW, EventQueues, EventSources, QueueOfEvent
from ..transport.queue_fed import SOURCES_KEPT_SECONDS, QueueFedTransport
from ..workflow.metrics import MetricRecorder
from .in_hand import WorkInHand
from .interceptors import Interceptor
from .runners import WorkflowRunner
from .worker import Worker

OpenTransport = Callable[[], Awaitable[Transport]]

CACHED_WORKFLOWS = 30
"""Functions are small, and the runs of a queue are spread over many (WK-17)."""

_RETURN_WITHIN = 0.2
"""Seconds for the answer's own way."""

_END_TAKES = 3.0
"""Seconds kept for what comes behind the activities' grace time: they are cancelled, and their ends reported."""

_log = logging.getLogger("stepwell.worker")


class FunctionOptions(TypedDict, total=False):
    """Of :class:`~stepwell.worker.Worker`, which describes them. What is missing here makes no sense in a function."""

    activity_executor: Executor | None
    interceptors: Sequence[Interceptor]
    workflow_runner: WorkflowRunner
    build_id: str | None
    identity: str | None
    max_cached_workflows: int
    max_concurrent_workflow_tasks: int
    max_concurrent_activities: int
    max_concurrent_local_activities: int
    max_eager_activity_reservations_per_workflow_task: int | None
    max_heartbeat_throttle_interval: timedelta
    default_heartbeat_throttle_interval: timedelta
    workflow_failure_exception_types: Sequence[type[BaseException]]
    patch_activation_callback: Callable[[PatchActivationInput], bool] | None
    metric_recorder: MetricRecorder | None
    deadlock_timeout: timedelta
    debug_mode: bool


class _Settings(NamedTuple):
    namespace: str
    task_queue: str
    workflows: Sequence[Any]
    activities: Sequence[Callable[..., Any]]
    data_converter: DataConverter
    client_interceptors: Sequence[ClientInterceptor]
    options: FunctionOptions

    def client(self, transport: Transport, identity: str | None = None) -> Client:
        return Client(
            transport,
            namespace=self.namespace,
            identity=self.options.get("identity") or identity,
            data_converter=self.data_converter,
            interceptors=self.client_interceptors,
        )

    def worker(self, client: Client) -> Worker:
        return Worker(
            client,
            task_queue=self.task_queue,
            workflows=self.workflows,
            activities=self.activities,
            max_concurrent_workflow_task_polls=1,
            max_concurrent_activity_task_polls=1,
            **self.options,
        )

    def kinds(self) -> tuple[str, ...]:
        """Of tasks; one poll each."""
        return (WORKFLOW,) * bool(self.workflows) + (ACTIVITY,) * bool(self.activities)


class _Nowhere:
    async def call(self, operation: Any, request: Any) -> Any:
        raise Unavailable("not connected")

    async def close(self) -> None:
        return None


class _Working:
    """One worker, from its first call to the one in which it ends."""

    def __init__(self, settings: _Settings, transport: Transport, identity: str | None) -> None:
        self.in_hand = WorkInHand()
        self.queues = EventQueues(self.in_hand.changed)
        client = settings.client(QueueFedTransport(EventSources(transport), self.queues), identity)
        client.transport = self.in_hand.counted(client.transport)
        self._polls = len(settings.kinds())
        self._worker = settings.worker(client)
        self._worker._on_spawn = self.in_hand.begun
        self.running = asyncio.create_task(self._worker.run())

    @property
    def info(self) -> WorkerInfo:
        return self._worker._info

    async def until_idle(self) -> None:
        """Raises what ended the worker."""
        idle = asyncio.create_task(self.in_hand.until_none(lambda: self.queues.quiet(self._polls)))
        try:
            await asyncio.wait((idle, self.running), return_when=asyncio.FIRST_COMPLETED)
        finally:
            idle.cancel()
        if self.running.done():
            await self.running

    async def stop(self, grace: float) -> None:
        self._worker._grace = grace
        await self._worker.shutdown()
        await asyncio.wait((self.running,))
        if not self.running.cancelled() and (error := self.running.exception()) is not None:
            _log.warning("The worker of %s ended with its time: %s", self._worker.task_queue, error)


class LambdaHandler:
    """Made by :func:`lambda_handler`. One call at a time, as Lambda makes them."""

    def __init__(self, settings: _Settings, open_transport: OpenTransport, stop_before: timedelta) -> None:
        self._settings = settings
        self._open_transport = open_transport
        self._stop_before = stop_before.total_seconds()
        self._runner: asyncio.Runner | None = None
        self._transport: Transport | None = None
        self._working: _Working | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._sources: frozenset[str] = frozenset()
        self._sources_until = 0.0

    def __call__(self, event: Any, context: Any) -> dict[str, list[dict[str, str]]]:
        """Answers with the messages that are to come again. Raises ``ValueError`` for an event of anything but SQS, and
        an ``ApiError`` when the engine refuses this function; then all of them come again."""
        records = _records(event)
        remaining = getattr(context, "get_remaining_time_in_millis", None)
        ends = None if remaining is None else time.monotonic() + remaining() / 1000 - _RETURN_WITHIN
        if self._runner is None:
            self._runner = asyncio.Runner()
        failed = self._runner.run(self._serve(records, ends, _identity(context)))
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}

    def close(self) -> None:
        """For tests; a function's process just ends."""
        if self._runner is not None:
            self._runner.run(self._close())
            self._runner.close()
            self._runner = None

    # --- one call ---

    async def _serve(
        self, records: Mapping[str, Mapping[str, Any]], ends: float | None, identity: str | None = None
    ) -> list[str]:
        """Ids of the messages that are not done with."""
        left = None if ends is None else max(0.0, ends - time.monotonic())
        stop_after = None if left is None else left - min(self._stop_before, left / 2)
        given: dict[str, str] = {}
        failed = list(records)
        limit = asyncio.timeout(stop_after)
        working: _Working | None = None
        try:
            async with limit:
                working = await self._worker(identity)
                await self._know_sources(working.info)
                given, failed = self._hand_in(working, records)
                await working.until_idle()
        except TimeoutError:
            if not limit.expired():
                raise
            _log.warning("The function's time is nearly over; what is not done of %s comes again", self._name())
            if ends is not None and self._working is not None:
                await self._stop(self._working, ends)
        except BaseException:
            self._working = working if working is not None and not working.running.done() else None
            raise
        open_handles = working.queues.take_back(given) if working is not None else set()
        return failed + [given[handle] for handle in given if handle in open_handles]

    async def _worker(self, identity: str | None) -> _Working:
        if self._transport is None:
            self._transport = await self._open_transport()
        if self._working is None:
            self._working = _Working(self._settings, self._transport, identity)
        return self._working

    async def _know_sources(self, worker: WorkerInfo) -> None:
        """Asked once a minute while there are calls: it is also how the engine knows that there is a worker."""
        if time.monotonic() < self._sources_until:
            return
        assert self._transport is not None
        request = GetTaskSourcesRequest(
            namespace=self._settings.namespace,
            task_queue=self._settings.task_queue,
            worker=worker,
            called_by_queue=True,
        )
        try:
            answer = await self._transport.call(GET_TASK_SOURCES, request)
        except NotFound:  # an engine of a release that has no such operation
            self._sources = frozenset()
        except Unavailable as error:
            # What it would say is about this worker, not about the messages at hand.
            _log.warning("The engine was not asked for the queues of %s: %s", self._name(), error)
            return
        else:
            queues = [QueueOfEvent.parse(queue) for queue in (*answer.workflow_queues, *answer.activity_queues)]
            self._sources = frozenset(queue.base for queue in queues if queue is not None)
        self._sources_until = time.monotonic() + SOURCES_KEPT_SECONDS

    def _hand_in(self, working: _Working, records: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
        """Ids by the handles under which they are worked on, and ids of what is not for this function."""
        given: dict[str, str] = {}
        refused: list[str] = []
        for message_id, record in records.items():
            trouble, kind = self._kind(record)
            if trouble:
                _log.error("A message of %s comes again: %s", record["eventSourceARN"], trouble)
                refused.append(message_id)
            else:
                given[working.queues.put(kind, record["body"])] = message_id
        return given, refused

    def _kind(self, record: Mapping[str, Any]) -> tuple[str, str]:
        """What is wrong with where it came from, or nothing, and its kind."""
        queue = QueueOfEvent.parse(record["eventSourceARN"])
        if queue is None:
            return "this is no task queue of Stepwell; remove the mapping", ""
        if self._sources and queue.base not in self._sources:
            return f"it is not a queue of {self._name()}, which this function works for; remove the mapping", ""
        if queue.kind not in self._settings.kinds():
            which = "workflows" if queue.kind == WORKFLOW else "activities"
            return f"this function has no {which}; give it {which}=[…] or remove the mapping", ""
        return "", queue.kind

    async def _stop(self, working: _Working, ends: float) -> None:
        """Within the time that is left. What does not end by then is no longer waited for."""
        self._working = None
        left = ends - time.monotonic()
        ending = asyncio.create_task(working.stop(max(0.0, left - _END_TAKES)))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.wait((ending,), timeout=max(0.0, left))
        if not ending.done():
            _log.error("The worker of %s did not end in time; raise the function's timeout", self._name())

    async def _close(self) -> None:
        if self._working is not None:
            await self._working.stop(0.0)
            self._working = None
        if self._ending:
            await asyncio.wait(self._ending)
        if self._transport is not None:
            await self._transport.close()
            self._transport = None

    def _name(self) -> str:
        return f"task queue {self._settings.task_queue!r}"


def lambda_handler(
    address: str | OpenTransport,
    *,
    task_queue: str,
    workflows: Sequence[Any] = (),
    activities: Sequence[Callable[..., Any]] = (),
    namespace: str = "default",
    data_converter: DataConverter = DataConverter.default,
    client_interceptors: Sequence[ClientInterceptor] = (),
    sign: bool | None = None,
    stop_before: timedelta = timedelta(seconds=5),
    **options: Unpack[FunctionOptions],
) -> LambdaHandler:
    """A handler for a Lambda function that is a worker: ``handler = lambda_handler("https://…", task_queue="orders",
    workflows=[…], activities=[…])`` in a module, and event source mappings from the task queue's two SQS queues, with
    ``ReportBatchItemFailures``.

    ``address`` and ``sign`` are those of ``Client.connect``; in place of an address a function that opens a transport
    may be given. ``data_converter`` and ``client_interceptors`` are the client's, ``options`` the worker's;
    ``max_cached_workflows`` is 30 unless it is given.
    ``stop_before``: how long before the end of the function's time (at most half of what there was) work that goes on
    is ended: activities are told (``activity.wait_for_worker_shutdown``), then cancelled and tried again elsewhere;
    messages of tasks that are not answered come again.

    Raises what ``Worker`` raises, at once, and ``ValueError`` for an address that no function can reach.
    """
    if not callable(address) and not str(address).startswith(("https://", "http://")):
        raise ValueError(f"{address!r} is not the address of a control plane that a function reaches: use https://host")
    if stop_before <= timedelta(0):
        raise ValueError("stop_before must be above zero; a function that is cut off loses what it does")
    options.setdefault("max_cached_workflows", CACHED_WORKFLOWS)
    settings = _Settings(
        namespace, task_queue, tuple(workflows), tuple(activities), data_converter, client_interceptors, options
    )
    settings.worker(settings.client(_Nowhere()))  # what is refused is refused when the function is made

    async def by_address() -> Transport:
        assert isinstance(address, str)
        return await open_transport(address, sign=sign)

    return LambdaHandler(settings, address if callable(address) else by_address, stop_before)


def _identity(context: Any) -> str | None:
    """The call that made the worker, at the function (WK-15)."""
    request_id, arn = getattr(context, "aws_request_id", None), getattr(context, "invoked_function_arn", None)
    return f"{request_id}@{arn}" if request_id and arn else None


def _records(event: Any) -> dict[str, Mapping[str, Any]]:
    """By their ids: the same message twice in one event is one message. Raises ValueError."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, Sequence) or isinstance(records, str):
        raise ValueError(
            "not an event of a queue; let an SQS event source mapping of the task queue call this function"
        )
    found: dict[str, Mapping[str, Any]] = {}
    for record in records:
        texts = [record.get(name) for name in ("messageId", "body", "eventSourceARN")]
        if record.get("eventSource") != "aws:sqs" or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"a record of {record.get('eventSource')!r} is not a message of SQS; this function is for event source "
                "mappings of the task queue"
            )
        found.setdefault(record["messageId"], record)
    return found
