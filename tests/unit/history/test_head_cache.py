"""Newest states with the events that the next workflow task shows, within bounds."""

import msgspec
from stepwell.api.enums import WorkflowIDConflictPolicy

from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.head_cache import HeadCache
from tests.support.history_run import EAGER, Run, activity, done

KEY = ExecutionKey("default", "order-1")


def commit_of(run: Run) -> Commit:
    assert run.last is not None
    state = run.s
    return Commit(
        namespace=state.namespace,
        workflow_id=state.workflow_id,
        seq=state.seq,
        run_id=state.run_id,
        kind="test",
        time=run.now,
        nonce=str(state.seq),
        events=run.last.events,
        state=state,
        closed=run.last.closed,
    )


def expected_tail(run: Run) -> list[int]:
    first = run.s.previous_started_event_id + 1 if run.s.previous_started_event_id else 1
    return [event.event_id for event in run.events if event.event_id >= first]


def test_the_tail_follows_every_kind_of_commit() -> None:
    run = Run()
    cache = HeadCache(10, 1_000_000)

    def check() -> None:
        entry = cache.committed(KEY, commit_of(run))
        assert entry.state is run.s and entry.tail is not None
        assert [event.event_id for event in entry.tail] == expected_tail(run)

    check()
    run.fail_task()
    check()
    run.signal()
    check()
    run.accept(activity())
    check()
    run.signal()
    check()
    run.accept(activity("2"), activity("3"))
    check()
    run.signal()
    check()
    run.terminate()
    check()
    run.start("run-2")
    check()
    run.start("run-3", workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    check()
    assert expected_tail(run) == [1, 2]


def test_the_tail_after_fused_steps() -> None:
    run = Run()
    cache = HeadCache(10, 1_000_000)
    cache.committed(KEY, commit_of(run))
    run.accept(activity(), eager=EAGER)
    scheduled = run.s.next_event_id - 1
    cache.committed(KEY, commit_of(run))
    run.fused([done(scheduled)], activity("2"))
    entry = cache.committed(KEY, commit_of(run))
    assert entry.tail is not None and [event.event_id for event in entry.tail] == expected_tail(run)


def test_a_loaded_head_knows_its_tail_only_when_its_own_commit_tells() -> None:
    run = Run()
    assert HeadCache(10, 1_000_000).loaded(commit_of(run)).tail is not None
    run.accept(activity())
    assert HeadCache(10, 1_000_000).loaded(commit_of(run)).tail is not None
    run.signal()
    cache = HeadCache(10, 1_000_000)
    assert cache.loaded(commit_of(run)).tail is None
    tail = tuple(event for event in run.events if event.event_id in expected_tail(run))
    cache.learned_tail(KEY, run.s.seq - 1, tail)
    assert cache.peek(KEY).tail is None  # type: ignore[union-attr]
    cache.learned_tail(KEY, run.s.seq, tail)
    assert cache.peek(KEY).tail == tail  # type: ignore[union-attr]


def test_a_stale_read_does_not_replace_what_was_written_since() -> None:
    run = Run()
    cache = HeadCache(10, 1_000_000)
    old = commit_of(run)
    run.accept(activity())
    newest = cache.committed(KEY, commit_of(run))
    assert cache.loaded(old) is newest


def test_least_recently_used_entries_go_first() -> None:
    cache = HeadCache(3, 1_000_000)
    commit = commit_of(Run())
    keys = [ExecutionKey("default", str(number)) for number in range(4)]
    for key in keys[:3]:
        cache.committed(key, commit)
    assert cache.get(keys[0]) is not None
    cache.committed(keys[3], commit)
    assert [key for key in keys if cache.peek(key) is not None] == [keys[0], keys[2], keys[3]]


def test_bytes_are_bounded_and_long_tails_not_kept() -> None:
    commit = commit_of(Run())
    cache = HeadCache(1_000, 20_000)
    for number in range(100):
        cache.committed(ExecutionKey("default", str(number)), commit)
    assert len(cache) < 10
    large = msgspec.structs.replace(commit.state, history_size=2_000_000)
    assert cache.committed(KEY, msgspec.structs.replace(commit, state=large)).tail is None
    for number in range(100):
        cache.drop(ExecutionKey("default", str(number)))
    cache.drop(KEY)
    assert len(cache) == 0 and cache._bytes == 0
