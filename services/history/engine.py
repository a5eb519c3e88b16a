"""The engine: one async method per operation of the API, over the ports and the pure core.

Code entry points: the operations are in the ``operations_*`` modules, one for each subject; what a request does to an
execution is decided in ``step``; ``executions`` commits it; ``polling`` hands work out; ``firing`` acts on deadlines;
``recovery`` rebuilds after a restart. ``engine_parts`` wires them; this module puts the operations together and owns
their life.
"""

import logging
from datetime import datetime

from ..common.settings import ProcessKind
from .commit import UNKNOWN, Awaited, Commit, ExecutionKey
from .executions import unavailable
from .operations_activities import ActivityOperations
from .operations_messages import MessageOperations
from .operations_standalone import StandaloneOperations
from .operations_system import SystemOperations
from .operations_tasks import WorkflowTaskOperations
from .operations_updates import UpdateOperations
from .operations_workflows import WorkflowOperations
from .ports import StoreUnavailable

log = logging.getLogger(__name__)


class Engine(
    WorkflowOperations,
    MessageOperations,
    UpdateOperations,
    WorkflowTaskOperations,
    ActivityOperations,
    StandaloneOperations,
    SystemOperations,
):
    """Raises ``stepwell.api.errors``. Call it from one event loop; ``start`` before the first request, ``stop`` at the
    end.

    ``token_key``: 16 to 64 secret bytes, kept with the store, so that tokens outlive a restart. ``make_dispatcher``
    says where hints go, other than to the engine's own matching; ``wrap_dispatcher`` puts something between, such as a
    simulated fault; ``query_board`` is where queries wait, other than in this process; ``task_sources`` names the
    queues from which workers receive themselves, where polls are not answered here, ``queue_backlog`` says how much
    waits there; ``wake_ups`` has the handlers of what is no workflow but armed like one; ``namespaces`` is the
    registry; ``metrics`` is told how it is doing, ``is_quick`` says whether starts go in small groups (``admission``).
    What the engine does by itself depends on ``settings.process``.
    """

    async def start(self) -> None:
        """Rebuilds the queues, then fires deadlines, where that is for this process to do. Raises Unavailable when the
        store cannot be read."""
        try:
            await self.namespaces.load()
        except StoreUnavailable as error:
            raise unavailable(error) from error
        if self._settings.process is ProcessKind.ONE_OF_MANY:
            self.namespaces.start()
        if self._settings.sweeps:
            try:
                count = await self._recovery.run()
            except StoreUnavailable as error:
                raise unavailable(error) from error
            log.info("Recovered %d open executions that wait for workers", count)
            self._sweeper.start()
        if self._settings.stays:
            self._holders.start()

    async def fire(self, key: ExecutionKey, fire_at: datetime, awaited: Awaited = UNKNOWN) -> bool:
        """Handles a deadline that was armed for ``fire_at`` and is due; again is harmless. What it raises means that it
        must be fired again. False: the write for which it was armed is not there; while it may still come, fire again.
        """
        return await self._fire(key, fire_at, awaited)

    async def hand_on(self, commit: Commit) -> None:
        """Does what a commit owes that its writer has not done, such as to offer its tasks to workers; again is
        harmless."""
        await self._tasks.process(commit)

    async def settle(self, seconds: float) -> bool:
        """Waits until what calls have left to the background is done; False when ``seconds`` were not enough. Then
        deadlines do the rest."""
        await self.namespaces.freshen()
        return await self._background.settle(seconds)

    async def stop(self) -> None:
        """Graceful: open long polls end empty, what is being committed is finished, nothing new is taken."""
        self._stopping = True
        self._matching.stop()
        self._watchers.stop()
        self._queries.stop()
        self._handed_out.stop()
        await self.namespaces.stop()
        await self._holders.stop()
        await self._sweeper.stop(self._settings.stop_grace.total_seconds())
        await self._background.drain(self._settings.stop_grace.total_seconds())

    def forget(self, keys: list[ExecutionKey]) -> None:
        """Retention deleted runs of these ids: what is cached of them may be out of date."""
        for key in keys:
            self._executions.cache.drop(key)
