"""What the state's ring has lost is found in the log, in few reads."""

from datetime import timedelta

import msgspec
import pytest

from stepwell_server.common.clock import Clock
from stepwell_server.history import request_ids, request_log
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.recent_signals import REPEATED_FOR, RecentSignals
from stepwell_server.history.state import ExecutionState
from tests.support.sample_commits import EPOCH, SampleRun

KEY = ExecutionKey("default", "order-000001")
SECOND = timedelta(seconds=1)


class Log:
    """Commits of one id that take in so many signals each; counts what is read."""

    def __init__(self) -> None:
        self.commits: dict[int, Commit] = {}
        self.reads = 0
        self.signals = 0
        self.now = EPOCH
        self._state = next(SampleRun(1).commits()).state
        self.take_in(0)

    @property
    def head(self) -> ExecutionState:
        return self._state

    def take_in(self, count: int) -> None:
        self._state = msgspec.structs.replace(self._state, seq=len(self.commits) + 1)
        for _ in range(count):
            request_ids.remember(self._state, request_ids.SIGNAL, str(self.signals))
            self.signals += 1
        commit = msgspec.structs.replace(
            next(SampleRun(1).commits()), seq=self._state.seq, state=self._state, time=self.now
        )
        self.commits[commit.seq] = commit

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        assert key == KEY
        self.reads += 1
        return self.commits.get(seq)


class At(Clock):
    def __init__(self, log: Log) -> None:
        self._log = log

    def now(self):
        return self._log.now

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture(params=[1, 7, 50])
def log(request: pytest.FixtureRequest) -> Log:
    log = Log()
    while log.signals < 1_000:
        log.take_in(request.param)
        log.take_in(0)
        log.now += 20 * SECOND / 1_000 * request.param
    return log


async def test_all_of_the_last_minutes_are_known_and_none_is_invented(log: Log) -> None:
    recent = RecentSignals(log, At(log))
    assert [number for number in range(log.signals) if not await recent.is_repeat(KEY, log.head, str(number))] == []
    assert not await recent.is_repeat(KEY, log.head, "new")
    assert not await recent.is_repeat(KEY, log.head, "")
    assert log.reads < 150, "read once, in leaps"
    log.reads = 0
    for _ in range(100):
        first = log.signals
        log.take_in(50)
        assert await recent.is_repeat(KEY, log.head, str(first)) and await recent.is_repeat(KEY, log.head, "0")
    assert log.reads == 0, "what was taken in since is in the ring of the head"


async def test_what_others_took_in_meanwhile_is_read(log: Log) -> None:
    recent = RecentSignals(log, At(log))
    assert await recent.is_repeat(KEY, log.head, "5")
    before = log.signals
    for _ in range(10):
        log.take_in(40)
    log.reads = 0
    assert [number for number in range(log.signals) if not await recent.is_repeat(KEY, log.head, str(number))] == []
    assert log.reads < 40 and log.signals == before + 400


async def test_what_no_client_repeats_any_more_is_forgotten(log: Log) -> None:
    recent = RecentSignals(log, At(log))
    assert await recent.is_repeat(KEY, log.head, "0")
    log.now += REPEATED_FOR + 30 * SECOND
    log.take_in(1)
    assert not await recent.is_repeat(KEY, log.head, "0")
    assert await recent.is_repeat(KEY, log.head, str(log.signals - 1))
    log.reads = 0
    assert not await RecentSignals(log, At(log)).is_repeat(KEY, log.head, "0")
    assert log.reads <= 2


async def test_a_ring_with_room_asks_nobody() -> None:
    log = Log()
    for _ in range(60):
        log.take_in(1)
    recent = RecentSignals(log, At(log))
    assert await recent.is_repeat(KEY, log.head, "0") and not await recent.is_repeat(KEY, log.head, "new")
    assert log.reads == 0


async def test_a_claimed_request_is_found_wherever_it_is(log: Log) -> None:
    for seq, commit in list(log.commits.items())[1::9]:
        newest = request_ids.ring(commit.state, request_ids.SIGNAL)[-1]
        number = next(n for n in range(log.signals) if request_ids.entry(request_ids.SIGNAL, str(n)) == newest)
        for claim in {1, max(1, seq - 100), seq - 1}:
            found = request_log.committed_since(log, KEY, log.head, claim, request_ids.SIGNAL, str(number))
            assert await found
    log.reads = 0
    for claim in (1, 20, log.head.seq - 1, log.head.seq):
        assert not await request_log.committed_since(log, KEY, log.head, claim, request_ids.SIGNAL, "new")
    assert log.reads < 500


async def test_commits_that_retention_has_deleted_end_the_search(log: Log) -> None:
    for seq in range(1, log.head.seq // 2):
        del log.commits[seq]
    assert not await request_log.committed_since(log, KEY, log.head, 1, request_ids.SIGNAL, "new")
    kept = log.commits[log.head.seq // 2 + 3]
    known = request_ids.ring(kept.state, request_ids.SIGNAL)[-1]
    number = next(n for n in range(log.signals) if request_ids.entry(request_ids.SIGNAL, str(n)) == known)
    assert await request_log.committed_since(log, KEY, log.head, 1, request_ids.SIGNAL, str(number))
