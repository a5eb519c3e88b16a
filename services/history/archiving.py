"""Archives closed runs (OP-06): writes what the state says is owed, and records it.

Theory of operation. A close owes the archive (``machines/archiving``), and the deadline of the debt asks for it, so
whatever is lost here is done again. The closes that the debt covers are gone through in order, and what is archived is
recorded now and then, at the latest with the last; a run may be written twice, which changes nothing. Until it is
recorded, no store lets retention have the run. A run that counts as deleted is passed over.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from stepwell.api.errors import ApiError, NotFound, Unavailable
from stepwell.api.events import HistoryEvent

from ..common.background import Background
from .archives import Archives
from .commit import Commit, ExecutionKey, before
from .executions import Executions, unavailable
from .machines import archiving
from .machines.run_checks import is_deleted
from .ports import ExecutionLog, StoreRefused, StoreUnavailable
from .requests import RecordArchived
from .state import ExecutionState
from .tasks import RecordVisibility

log = logging.getLogger(__name__)

_PAUSES = (1.0, 5.0)
"""Seconds until it is tried again when a store cannot; then the log's deadline does it."""

_PAGE_EVENTS = 500
_RECORDED = 16
"""Runs of one id that are archived between two records of it."""


class _Closed(NamedTuple):
    """The commit that closed a run, and the run's state by then."""

    commit: Commit
    state: ExecutionState


class Archiving:
    """``archives`` None: there is no place for them, and nothing is ever owed."""

    def __init__(
        self,
        execution_log: ExecutionLog,
        executions: Executions,
        archives: Archives | None,
        background: Background,
        concurrency: int,
    ) -> None:
        self._log = execution_log
        self._executions = executions
        self._archives = archives
        self._background = background
        self._room = asyncio.Semaphore(concurrency)
        self._working: set[ExecutionKey] = set()

    def committed(self, key: ExecutionKey) -> None:
        """A commit says that it is time."""
        if key not in self._working:
            self._working.add(key)
            self._background.spawn(self._run(key))

    async def _run(self, key: ExecutionKey) -> None:
        try:
            for pause in (*_PAUSES, None):
                try:
                    async with self._room:
                        await self._archive(key)
                    return
                except Unavailable as error:
                    if pause is None:
                        log.info("Runs of workflow %r are archived later: %s", key.workflow_id, error)
                        return
                    await asyncio.sleep(pause)
        finally:
            self._working.discard(key)

    async def _archive(self, key: ExecutionKey) -> None:
        """Raises Unavailable."""
        try:
            state = await self._executions.read(key)
            entry = None if state is None else archiving.owed_archive(state)
            if state is None or entry is None:
                return
            if self._archives is None:
                log.warning("Workflow %r owes an archive, and this process has no place for it", key.workflow_id)
                return
            await self._write_all(self._archives, key, state, entry.after_seq, entry.upto_seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        except NotFound:
            return  # it is gone meanwhile
        except Unavailable:
            raise
        except (ApiError, StoreRefused) as error:
            log.warning("Runs of workflow %r cannot be archived, and are kept: %s", key.workflow_id, error)

    async def _write_all(
        self, archives: Archives, key: ExecutionKey, head: ExecutionState, after_seq: int, upto_seq: int
    ) -> None:
        done, recorded = 0, after_seq
        while after_seq < upto_seq:
            closed = await self._next_closed(key, after_seq, upto_seq)
            if closed is None:
                break
            await self._write(archives, head, closed)
            after_seq = closed.commit.seq
            done += 1
            if done % _RECORDED == 0:
                recorded = after_seq
                await self._executions.transact(key, RecordArchived(upto_seq=recorded))
        if recorded < upto_seq:
            await self._executions.transact(key, RecordArchived(upto_seq=upto_seq))

    async def _next_closed(self, key: ExecutionKey, after_seq: int, upto_seq: int) -> _Closed | None:
        """The first run that closed behind that commit; None when there is none left."""
        seq = after_seq + 1
        while seq <= upto_seq:
            commit = await self._log.get(key, seq)
            if commit is None:
                seq += 1
                continue
            if commit.closed is not None:
                return _Closed(commit, commit.closed.state)
            state = commit.state
            if state.close_time is None:
                seq = await self._close_seq(key, commit)
            elif state.numbered_seq == seq:
                return _Closed(commit, state)
            else:
                seq += 1  # written behind a close, such as that something was delivered
        return None

    async def _close_seq(self, key: ExecutionKey, commit: Commit) -> int:
        """Of a run that the commit has open, and that has closed since."""
        last = await self._log.find_run(key, commit.run_id)
        state = None if last is None else last.state_of(commit.run_id)
        if state is None or state.close_time is None or state.numbered_seq <= commit.seq:
            return commit.seq + 1
        return state.numbered_seq

    async def _write(self, archives: Archives, head: ExecutionState, closed: _Closed) -> None:
        commit, state = closed
        shown = _shown(commit, state.run_id)
        if shown is None or is_deleted(head, state.run_id):
            return
        await archives.write(commit, shown, self._pages(commit.key, state))

    async def _pages(self, key: ExecutionKey, state: ExecutionState) -> AsyncIterator[Sequence[HistoryEvent]]:
        after_seq, last_event_id = before(state), 0
        while True:
            page = await self._log.read_events(key, state.run_id, after_seq, _PAGE_EVENTS)
            if page.events:
                last_event_id = page.events[-1].event_id
                yield page.events
            if page.last_seq == after_seq or last_event_id >= state.next_event_id - 1:
                break
            after_seq = page.last_seq
        if last_event_id != state.next_event_id - 1:
            raise Unavailable(
                f"run {state.run_id} of workflow {key.workflow_id!r} can be read up to event {last_event_id} of "
                f"{state.next_event_id - 1} only"
            )


def _shown(commit: Commit, run_id: str) -> RecordVisibility | None:
    """What the close had lists show of the run."""
    shown = [task for task in commit.tasks if isinstance(task, RecordVisibility) and task.run_id == run_id]
    return shown[-1] if shown else None
