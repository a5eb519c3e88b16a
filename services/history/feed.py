"""The feed: what happens behind every commit, wherever it was made (design section 8).

Theory of operation. A record says that one commit was written. Records come at least once, in any order, late or, when
a stream is lost, never. So each is handled by itself, and everything done about one is checked against the newest state
or the newest seq before it acts: the record of the list of executions is projected, what the commit owes is handed on
where its writer left that to the feed, and what has ended is marked for retention. A commit that landed after its own
deadline had fired, and so found nobody to wake it, is woken here. What the feed does not do, deadlines do.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from .commit import Commit, ExecutionKey
from .ports import ExecutionLog

log = logging.getLogger(__name__)

LATE = timedelta(seconds=5)
"""A commit that landed less than this behind its deadline is found by the deadline itself, which is kept for longer."""

Work = Callable[[Commit], Awaitable[object]]
Fire = Callable[[ExecutionKey, datetime], Awaitable[object]]


class FeedRecord(NamedTuple):
    """One commit was written."""

    key: ExecutionKey
    seq: int
    commit: Commit | None
    """None: it is not in the record and has to be read."""
    hands_on: bool
    """What it owes is the feed's to do; else its writer does it."""
    landed: datetime
    """When the store took it."""


class Feed:
    """``project(commit)`` writes what a list shows, if it is newer; ``hand_on(commit)`` does what the commit owes;
    ``fire(key, deadline)`` handles a deadline; ``expire(commit)`` marks what is over for retention."""

    def __init__(
        self, log: ExecutionLog, *, project: Work, hand_on: Work, fire: Fire, expire: Work | None = None
    ) -> None:
        self._log = log
        self._project = project
        self._hand_on = hand_on
        self._fire = fire
        self._expire = expire

    async def handle(self, record: FeedRecord) -> None:
        """Again is harmless. Does all that it can, and then raises what went wrong first: the record is to be handled
        again."""
        commit = record.commit
        if commit is None:
            commit = await self._log.get(record.key, record.seq)
            if commit is None:
                return  # its retention is over
        work = [self._project(commit)]
        if record.hands_on and commit.tasks:
            work.append(self._hand_on(commit))
        if self._expire is not None:
            work.append(self._expire(commit))
        if commit.deadline is not None and record.landed > commit.deadline + LATE:
            work.append(self._fire(commit.key, commit.deadline))
        results = await asyncio.gather(*work, return_exceptions=True)
        failed = [result for result in results if isinstance(result, BaseException)]
        for error in failed[1:]:
            log.warning("The feed failed with commit %d of %r", commit.seq, commit.key, exc_info=error)
        if failed:
            raise failed[0]
