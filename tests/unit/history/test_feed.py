"""What the feed does behind one commit, and that a failure of one thing holds up none of the others."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.feed import LATE, Feed, FeedRecord
from stepwell_server.history.ports import ExecutionLog
from tests.support.sample_commits import SampleRun

COMMITS = list(SampleRun(1).commits())
START = COMMITS[0]


class Ports:
    """Notes what the feed asks for; ``fail`` names what raises."""

    def __init__(self, *fail: str) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.fail = fail

    def _note(self, what: str, *of: Any) -> None:
        self.done.append((what, *of))
        if what in self.fail:
            raise OSError(what)

    async def project(self, commit: Commit) -> None:
        self._note("project", commit.seq)

    async def hand_on(self, commit: Commit) -> None:
        self._note("hand_on", commit.seq)

    async def expire(self, commit: Commit) -> None:
        self._note("expire", commit.seq)

    async def fire(self, key: ExecutionKey, deadline: datetime) -> None:
        self._note("fire", key, deadline)

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        self._note("get", seq)
        return next((commit for commit in COMMITS if (commit.key, commit.seq) == (key, seq)), None)

    def feed(self) -> Feed:
        log: ExecutionLog = self  # type: ignore[assignment]
        return Feed(log, project=self.project, hand_on=self.hand_on, fire=self.fire, expire=self.expire)


def record(commit: Commit = START, *, hands_on: bool = True, **more: Any) -> FeedRecord:
    values: dict[str, Any] = {"commit": commit, "landed": commit.time}
    return FeedRecord(key=commit.key, seq=commit.seq, hands_on=hands_on, **(values | more))


async def test_a_commit_is_projected_handed_on_and_shown_to_retention() -> None:
    ports = Ports()
    await ports.feed().handle(record())
    assert sorted(ports.done) == [("expire", 1), ("hand_on", 1), ("project", 1)]


async def test_what_its_writer_hands_on_is_not_handed_on_twice() -> None:
    ports = Ports()
    await ports.feed().handle(record(hands_on=False))
    assert sorted(ports.done) == [("expire", 1), ("project", 1)]


async def test_a_commit_that_is_not_in_the_record_is_read() -> None:
    ports = Ports()
    await ports.feed().handle(record(commit=START)._replace(commit=None))
    assert ("get", 1) in ports.done and ("hand_on", 1) in ports.done
    ports = Ports()
    await ports.feed().handle(record()._replace(commit=None, seq=99))
    assert ports.done == [("get", 99)], "its retention is over"


@pytest.mark.parametrize(("behind", "fires"), [(timedelta(0), False), (LATE, False), (LATE * 1.01, True)])
async def test_a_commit_that_landed_behind_its_own_deadline_is_woken(behind: timedelta, fires: bool) -> None:
    assert START.deadline is not None
    ports = Ports()
    await ports.feed().handle(record(hands_on=False, landed=START.deadline + behind))
    assert (("fire", START.key, START.deadline) in ports.done) is fires


@pytest.mark.parametrize("fails", ["project", "hand_on", "expire", "fire"])
async def test_one_failure_is_raised_when_all_else_is_done(fails: str) -> None:
    assert START.deadline is not None
    ports = Ports(fails)
    with pytest.raises(OSError, match=fails):
        await ports.feed().handle(record(landed=START.deadline + timedelta(days=1)))
    assert sorted(note[0] for note in ports.done) == ["expire", "fire", "hand_on", "project"]
