"""Deletes runs that count as deleted (LC-12): has the store erase them, and records that they are gone.

Theory of operation. The commit that made the run count as deleted owes its deletion, so whatever is lost here is done
again: by recovery, or when the deadline asks. Erasing goes on where it broke off, and of what is gone there is nothing
to do. What the run still has for others is told by its history, so its deletion waits until that is delivered. The
newest commit of a log is never erased while anybody may begin a run behind it; so the run's last state, stripped of all
that users put in, goes last (``forget``).
"""

import asyncio
import logging
from collections.abc import Callable

from stepwell.api.errors import ApiError, NotFound, Unavailable

from ..common import principals
from ..common.background import Background
from .archives import Archives
from .commit import ExecutionKey
from .executions import Executions, unavailable
from .machines import archiving, deletion
from .ports import ExecutionLog, StoreUnavailable, VisibilityStore
from .requests import Delete, RecordDeleted, Request
from .state import ExecutionState, OwedDeletion

log = logging.getLogger(__name__)

_PAUSES = (0.2, 1.0, 5.0)
"""Seconds until it is tried again when the store cannot; then the log's deadline does it."""


class Deleting:
    """``is_archived``: whether runs of the namespace may be in the archive."""

    def __init__(
        self,
        execution_log: ExecutionLog,
        visibility: VisibilityStore,
        executions: Executions,
        background: Background,
        concurrency: int,
        archives: Archives | None = None,
        is_archived: Callable[[str], bool] = lambda namespace: False,
    ) -> None:
        self._archives = archives
        self._is_archived = is_archived
        self._log = execution_log
        self._visibility = visibility
        self._executions = executions
        self._background = background
        self._room = asyncio.Semaphore(concurrency)
        self._working: set[tuple[ExecutionKey, str]] = set()

    async def ask(self, key: ExecutionKey, run_id: str, identity: str, first_run_id: str = "") -> None:
        """From then on the run counts as deleted. Raises NotFound, Unavailable."""
        principal = principals.current()

        async def prepare(state: ExecutionState | None) -> Request:
            found = state is not None and run_id not in ("", state.run_id) and await self._is_there(key, run_id)
            return Delete(run_id=run_id, identity=identity, first_run_id=first_run_id, found=found, principal=principal)

        await self._executions.transact(key, None, prepare)

    async def ask_archived(self, key: ExecutionKey, run_id: str) -> bool:
        """Deletes a run of which only the archive is left; whether there was one. Raises Unavailable."""
        try:
            return bool(run_id) and await self._erase_archive(key, run_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def erase_archive(self, namespace: str) -> bool:
        """Some of what is archived of a namespace; whether there may be more. Raises Unavailable."""
        if self._archives is None or not self._is_archived(namespace):
            return False
        try:
            return await self._archives.erase_some(namespace)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _erase_archive(self, key: ExecutionKey, run_id: str) -> bool:
        if self._archives is None or not self._is_archived(key.namespace):
            return False
        return await self._archives.erase(key, run_id)

    async def _awaits_archive(self, key: ExecutionKey, state: ExecutionState, run_id: str) -> bool:
        if archiving.owed_archive(state) is None:
            return False
        commit = await self._log.find_run(key, run_id)
        run = None if commit is None else commit.state_of(run_id)
        return run is not None and archiving.awaits(state, run.numbered_seq)

    async def _is_there(self, key: ExecutionKey, run_id: str) -> bool:
        try:
            return await self._log.find_run(key, run_id) is not None
        except StoreUnavailable as error:
            raise unavailable(error) from error

    def committed(self, key: ExecutionKey, run_id: str) -> None:
        """A commit owes this deletion, or asks for it again."""
        if (key, run_id) not in self._working:
            self._working.add((key, run_id))
            self._background.spawn(self._run(key, run_id))

    def resume(self, key: ExecutionKey, state: ExecutionState) -> None:
        """Whatever is not done: after a restart."""
        for entry in state.owed:
            if isinstance(entry, OwedDeletion):
                self.committed(key, entry.run_id)

    async def _run(self, key: ExecutionKey, run_id: str) -> None:
        try:
            for pause in (*_PAUSES, None):
                try:
                    async with self._room:
                        await self._delete(key, run_id)
                    return
                except Unavailable as error:
                    if pause is None:
                        log.info("Run %s of workflow %r is deleted later: %s", run_id, key.workflow_id, error)
                        return
                    await asyncio.sleep(pause)
        finally:
            self._working.discard((key, run_id))

    async def _delete(self, key: ExecutionKey, run_id: str) -> None:
        state = await self._executions.read(key)
        if state is None or not deletion.pending(state, run_id) or deletion.owes_more(state, run_id):
            return  # what it owes asks again when it is delivered
        try:
            if await self._awaits_archive(key, state, run_id):
                return  # asked for again when that is recorded
            await self._erase_archive(key, run_id)
            await self._log.erase_run(key, run_id)
            await self._visibility.remove(key, run_id, state.last_event_time)
            outcome = await self._executions.transact(key, RecordDeleted(run_id=run_id))
            left = outcome.transition.state
            if left.deleted and not left.owed:
                await self._log.forget(key, left.seq)
                self._executions.cache.drop(key)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        except NotFound:
            return  # retention was faster
        except Unavailable:
            raise
        except ApiError as error:
            log.warning("Run %s of workflow %r cannot be deleted: %s", run_id, key.workflow_id, error)
