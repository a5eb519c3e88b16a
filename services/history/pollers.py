"""Who polls a task queue: in this process, and, where workers are served elsewhere too, as far as they have said so."""

from datetime import timedelta

from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import PollerInfo, WorkerInfo

from ..common.clock import Clock
from ..matching.service import Matching, QueueName
from .executions import unavailable
from .ports import PollersSeen, StoreUnavailable
from .workers import Seen

SAID_EVERY = timedelta(seconds=60)
"""How often a worker that polls is noted for others (features TQ-21 shows who polled within five minutes)."""

MOST_TOGETHER = 10_000
"""Workers of all queues of a namespace, each kind of a queue for itself, in one list."""

_SLACK = timedelta(seconds=30)


class Pollers:
    """``seen``: where processes note for each other who polls; None where this one sees all polls."""

    def __init__(self, matching: Matching, clock: Clock, seen: PollersSeen | None = None) -> None:
        self._matching = matching
        self._clock = clock
        self._seen = seen
        self._noted: dict[tuple[QueueName, str], float] = {}

    @property
    def are_all_known(self) -> bool:
        return self._seen is not None

    async def note(self, name: QueueName, worker: WorkerInfo, *, called: bool = False) -> None:
        """A worker polls, or is ``called`` by the queue. For others it is noted once a minute; that this fails is no
        reason to refuse the poll."""
        if self._seen is None:
            return
        key, now = (name, worker.identity), self._clock.monotonic()
        if now - self._noted.get(key, -SAID_EVERY.total_seconds()) < SAID_EVERY.total_seconds():
            return
        self._forget(now)
        self._noted[key] = now
        try:
            await self._seen.note(name, worker.identity, self._clock.now())
            if called:
                await self._seen.note_called(name, self._clock.now())
        except StoreUnavailable:
            del self._noted[key]

    async def of(self, name: QueueName) -> tuple[PollerInfo, ...]:
        """Latest first. Raises Unavailable."""
        here = self._matching.pollers(name)
        if self._seen is None:
            return here
        known = {poller.identity: poller for poller in await self._elsewhere(name)}
        known |= {poller.identity: poller for poller in here}
        return tuple(sorted(known.values(), key=lambda poller: poller.last_access_time, reverse=True))

    async def workers(self, namespace: str, task_queue: str = "") -> list[Seen]:
        """Those of one task queue, or of all. Raises Unavailable, and InvalidArgument where those of all are too many
        to be looked through."""
        queues = [task_queue] if task_queue else self._matching.task_queues(namespace)
        names = [QueueName(namespace, queue, kind) for queue in queues for kind in TaskQueueKind]
        if task_queue or self._seen is None:
            return [self._as_seen(name, poller) for name in names for poller in await self.of(name)]
        known = {(name, poller.identity): poller for name, poller in await self._in_namespace(namespace)}
        known |= {(name, poller.identity): poller for name in names for poller in self._matching.pollers(name)}
        return [self._as_seen(name, poller) for (name, _), poller in known.items()]

    def _as_seen(self, name: QueueName, poller: PollerInfo) -> Seen:
        return Seen(name.task_queue, name.kind, poller, self._matching.worker(name, poller.identity))

    async def polled_within(self, name: QueueName, limit: timedelta) -> bool:
        """Whether a worker has polled so lately, or did when it was last noted, or comes when it is called. Raises
        Unavailable."""
        if self._matching.ever_polled(name) and self._matching.seconds_without_poller(name) <= limit.total_seconds():
            return True
        if self._seen is None:
            return False
        since = self._clock.now() - limit - SAID_EVERY - _SLACK
        polled = any(poller.last_access_time >= since for poller in await self._elsewhere(name))
        return polled or await self._is_called(name)

    async def serve(self, name: QueueName) -> bool:
        """Whether anybody does, as far as is known. Raises Unavailable."""
        return bool(await self.of(name)) or await self._is_called(name)

    async def _is_called(self, name: QueueName) -> bool:
        if self._seen is None:
            return False
        try:
            return await self._seen.is_called(name)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _elsewhere(self, name: QueueName) -> list[PollerInfo]:
        assert self._seen is not None
        try:
            return await self._seen.pollers(name)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _in_namespace(self, namespace: str) -> list[tuple[QueueName, PollerInfo]]:
        assert self._seen is not None
        try:
            found = await self._seen.in_namespace(namespace, MOST_TOGETHER)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        if found is None:
            raise InvalidArgument(
                f"namespace {namespace!r} has had too many workers lately to list those of all task queues (at most "
                f"{MOST_TOGETHER}); give a task_queue",
                field="task_queue",
            )
        return found

    def _forget(self, now: float) -> None:
        if len(self._noted) > 10_000:
            age = SAID_EVERY.total_seconds()
            self._noted = {key: noted for key, noted in self._noted.items() if now - noted < age}
