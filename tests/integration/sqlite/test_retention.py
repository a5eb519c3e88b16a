"""Retention deletes closed runs that are old enough, in small batches, and nothing else."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.embedded.prefixes import PARTS_PER_BATCH
from stepwell_server.adapters.embedded.retention import COMMITS_PER_BATCH
from stepwell_server.history.commit import BEGINNING, Commit, ExecutionKey
from stepwell_server.history.ports import EventsPage
from tests.integration.sqlite.helpers import append_runs, on_writer
from tests.support.sample_commits import EPOCH, SampleRun, chain, owing, sample_item

DAY = timedelta(days=1)
ALL_TABLES = ("logs", "runs", "commits", "activity_items", "armed", "markers", "prefixes")


async def rows(backend: Backend) -> dict[str, int]:
    def count(connection: object) -> dict[str, int]:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # type: ignore[attr-defined]
            for table in ALL_TABLES
        }

    counts: dict[str, int] = await on_writer(backend, count)
    return counts


@pytest.fixture(params=["orders.db", ":memory:"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    return ":memory:" if request.param == ":memory:" else tmp_path / request.param


async def append(backend: Backend, run: SampleRun, count: int | None = None) -> None:
    for commit in list(run.commits())[:count]:
        await backend.log.append(commit, arm=commit.deadline)


async def test_old_closed_runs_go_with_all_that_is_theirs(path: str | Path) -> None:
    backend = embedded_backend(path)
    old = SampleRun(1)
    await append(backend, old)
    await backend.log.put_activity(sample_item(old))
    assert len(await backend.sweep(EPOCH)) == 0
    assert len(await backend.sweep(EPOCH + DAY)) == 1
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    key = ExecutionKey("default", old.workflow_id)
    assert await backend.log.head(key) is None
    assert await backend.log.find_run(key, old.run_id) is None
    assert await backend.timers.next_fire() is None
    await append(backend, SampleRun(1, run=1))  # the id begins anew
    await backend.close()


async def test_open_and_recent_runs_stay(path: str | Path) -> None:
    backend = embedded_backend(path)
    open_run, recent = SampleRun(1), SampleRun(2, start_time=EPOCH + 5 * DAY)
    await append(backend, open_run, 4)
    await append(backend, recent)
    before = await rows(backend)
    assert len(await backend.sweep(EPOCH + 4 * DAY)) == 0
    assert await rows(backend) == before
    await backend.close()


async def test_an_open_run_stays_when_an_earlier_one_of_its_id_goes(path: str | Path) -> None:
    backend = embedded_backend(path)
    first, second = SampleRun(3), SampleRun(3, run=1, first_seq=6, start_time=EPOCH + DAY)
    await append(backend, first)
    await append(backend, second, 3)
    assert len(await backend.sweep(EPOCH + 9 * DAY)) == 1
    key = ExecutionKey("default", first.workflow_id)
    assert await backend.log.find_run(key, first.run_id) is None
    head = await backend.log.find_run(key, second.run_id)
    assert head is not None
    assert (head.seq, head) == (8, await backend.log.head(key))
    assert len((await backend.log.read_events(key, second.run_id, 0, 1_000)).events) > 10
    assert await backend.log.read_events(key, first.run_id, 0, 10) == EventsPage((), 0)
    rest = list(SampleRun(3, run=1, first_seq=6, start_time=EPOCH + DAY).commits())[3:]
    for commit in rest:
        await backend.log.append(commit)
    assert len(await backend.sweep(EPOCH + 9 * DAY)) == 1
    assert (await rows(backend))["logs"] == 0
    await backend.close()


async def test_a_long_run_is_never_shown_without_its_beginning(tmp_path: Path) -> None:
    backend = embedded_backend(tmp_path / "orders.db")
    run = SampleRun(4, steps=3 * COMMITS_PER_BATCH)
    await append(backend, run)
    key = ExecutionKey("default", run.workflow_id)
    sweeping = asyncio.ensure_future(backend.sweep(EPOCH + 9 * DAY))
    shown: list[int] = []
    while not sweeping.done():
        page = await backend.log.read_events(key, run.run_id, 0, 1)
        shown.append(page.events[0].event_id if page.events else 0)
        await asyncio.sleep(0)
    assert await sweeping == [key]
    assert set(shown) <= {0, 1}
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_a_sweep_of_many_runs_lets_writers_through(tmp_path: Path) -> None:
    backend = embedded_backend(tmp_path / "orders.db")
    await asyncio.gather(*(append(backend, SampleRun(number)) for number in range(300)))
    sweeping = asyncio.ensure_future(backend.sweep(EPOCH + 9 * DAY))
    written = 0
    while not sweeping.done():
        await append(backend, SampleRun(1_000 + written, start_time=EPOCH + 10 * DAY), 1)
        written += 1
    assert len(await sweeping) == 300
    assert written > 3
    assert (await rows(backend))["commits"] == written
    await backend.close()


async def test_space_of_what_went_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    sizes = []
    for _ in range(3):
        backend = embedded_backend(path)
        await asyncio.gather(*(append(backend, SampleRun(number)) for number in range(150)))
        assert len(await backend.sweep(EPOCH + 9 * DAY)) == 150
        await backend.close()
        sizes.append(path.stat().st_size)
    assert sizes[2] <= sizes[0] * 1.1


async def test_a_deadline_of_a_deleted_id_is_forgotten(path: str | Path) -> None:
    backend = embedded_backend(path)
    run = SampleRun(5)
    await append(backend, run)
    late: datetime = EPOCH + 3 * DAY
    key = ExecutionKey("default", run.workflow_id)
    await backend.timers.arm(key, late)
    await backend.sweep(EPOCH + DAY)
    assert await backend.timers.next_fire() is None
    assert await backend.timers.due(late, 10) == []
    await backend.timers.fired([(late, key)])
    await backend.sweep(EPOCH + 9 * DAY)
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_only_closed_runs_have_a_close_time_that_counts(path: str | Path) -> None:
    """A visibility record that says RUNNING is never swept, whatever times it carries."""
    backend = embedded_backend(path)
    start = next(SampleRun(6).commits())
    tasks = tuple(
        msgspec.structs.replace(task, close_time=EPOCH) if hasattr(task, "close_time") else task for task in start.tasks
    )
    await backend.log.append(msgspec.structs.replace(start, tasks=tasks))
    assert len(await backend.sweep(EPOCH + 9 * DAY)) == 0
    assert await backend.log.head(start.key) is not None
    await backend.close()


async def test_runs_of_append_all_are_swept_once(path: str | Path) -> None:
    backend = embedded_backend(path)
    await append_runs(backend, range(10))
    assert len(await backend.sweep(EPOCH + 9 * DAY)) == 10
    assert len(await backend.sweep(EPOCH + 9 * DAY)) == 0
    await backend.close()


@pytest.mark.parametrize("days", [1, 0], ids=["one after the other", "closed at the same moment"])
async def test_a_commit_of_two_runs_stays_until_both_are_gone(path: str | Path, days: int) -> None:
    backend = embedded_backend(path)
    commits = chain(7, runs=3)
    flat = [commit for run in commits for commit in run]
    if not days:
        flat = [_closing_at(commit, EPOCH) for commit in flat]
    for commit in flat:
        await backend.log.append(commit, arm=commit.deadline)
    key, runs = flat[0].key, [run[0].run_id for run in commits]
    closed = [commit.closed.state.close_time for commit in flat if commit.closed is not None]
    until = max(time for time in closed if time is not None) if days else EPOCH
    assert len(await backend.sweep(until)) == (1 if days else 0)  # all that closed before, so never the last ones
    if days:
        assert await backend.log.find_run(key, runs[0]) is None
        assert await backend.log.read_events(key, runs[0], 0, 99) == EventsPage((), 0)
        assert (await rows(backend))["commits"] == len(flat) - len(commits[0])
        for run_id in runs[1:]:
            page = await backend.log.read_events(key, run_id, 0, 1_000)
            assert page.events == tuple(event for commit in flat for event in commit.events_of(run_id))
    assert set(await backend.sweep(EPOCH + 9 * DAY)) == {key}
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_the_earlier_of_two_runs_goes_first(path: str | Path) -> None:
    """Both closed at the same moment, and the batch ends between them: what is left is a whole run."""
    backend = embedded_backend(path)
    commits = chain(8, runs=2, steps=COMMITS_PER_BATCH)
    flat = [_closing_at(commit, EPOCH) for run in commits for commit in run]
    for commit in flat:
        await backend.log.append(commit)
    key, (first, second) = flat[0].key, (run[0].run_id for run in commits)
    sweeping = asyncio.ensure_future(backend.sweep(EPOCH + DAY))
    while not sweeping.done():
        older = (await backend.log.read_events(key, first, 0, 1)).events
        newer = (await backend.log.read_events(key, second, 0, 1)).events
        assert newer or not older, "the commit of both went while the earlier run was kept"
        assert not newer or newer[0].event_id == 1
        await asyncio.sleep(0)
    assert set(await sweeping) == {key}
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_a_run_that_is_kept_keeps_the_later_ones_of_its_id(path: str | Path) -> None:
    """Else it would lose its end, and show that of another."""
    backend = embedded_backend(path)
    commits = chain(9, runs=3)
    flat = [commit for run in commits for commit in run]
    for commit in flat:
        await backend.log.append(commit)
    key, first = flat[0].key, flat[0].run_id
    closed_first = "UPDATE runs SET close_us = close_us + 3600000000 WHERE first_seq = 1"
    await on_writer(backend, lambda connection: connection.execute(closed_first).close())
    others = [SampleRun(number) for number in range(20, 23)]
    for other in others:
        await append(backend, other)
    swept = await backend.sweep(EPOCH + timedelta(minutes=30))
    assert sorted(swept) == sorted(ExecutionKey("default", other.workflow_id) for other in others)
    page = await backend.log.read_events(key, first, 0, 1_000)
    assert page.events == tuple(event for commit in flat for event in commit.events_of(first))
    assert set(await backend.sweep(EPOCH + 9 * DAY)) == {key}
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


def _closing_at(commit: Commit, time: datetime) -> Commit:
    tasks = tuple(
        msgspec.structs.replace(task, close_time=time) if getattr(task, "close_time", None) else task
        for task in commit.tasks
    )
    return msgspec.structs.replace(commit, tasks=tasks)


async def test_a_run_stays_until_what_it_owes_is_delivered(path: str | Path) -> None:
    """With all later ones of its id: the next one's first commit may hold its end, the newest knows what is owed."""
    backend = embedded_backend(path)
    runs = [SampleRun(7, run=number, first_seq=5 * number + 1, start_time=EPOCH + number * DAY) for number in range(4)]
    commits = [commit for run in runs for commit in run.commits()]
    for commit in commits:
        await backend.log.append(owing(commit, runs[1].run_id) if commit.seq >= 10 else commit)
    key = ExecutionKey("default", runs[0].workflow_id)
    assert await backend.sweep(EPOCH + 9 * DAY) == [key]
    assert [await backend.log.find_run(key, run.run_id) is not None for run in runs] == [False, True, True, True]
    assert await backend.sweep(EPOCH + 9 * DAY) == []
    state = msgspec.structs.replace(commits[-1].state, seq=21)
    await backend.log.append(msgspec.structs.replace(commits[-1], seq=21, state=state, events=(), owes=False))
    assert await backend.sweep(EPOCH + 9 * DAY) == [key] * 3
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_runs_that_owe_do_not_hold_up_those_behind_them(path: str | Path) -> None:
    backend = embedded_backend(path)
    for number in range(120):
        run = SampleRun(number)
        for commit in run.commits():
            await backend.log.append(owing(commit, run.run_id) if commit.state.close_time and number < 110 else commit)
    assert len(await backend.sweep(EPOCH + 9 * DAY)) == 10
    assert (await rows(backend))["logs"] == 110
    await backend.close()


async def put_parts(backend: Backend, run: SampleRun, count: int) -> None:
    events = next(iter(SampleRun(9).commits())).events
    key = ExecutionKey("default", run.workflow_id)
    for number in range(1, count + 1):
        await backend.log.put_prefix(key, run.run_id, BEGINNING + number, events, now=EPOCH)


async def test_what_a_run_began_with_goes_with_it_and_not_before(path: str | Path) -> None:
    """Also one of many parts, of which each batch takes a few: no reader sees a history without its start."""
    backend = embedded_backend(path)
    first, second = SampleRun(1), SampleRun(1, run=1, first_seq=6)
    await append(backend, first)
    await put_parts(backend, second, 2 * PARTS_PER_BATCH + 1)
    commits = list(second.commits())
    for commit in commits[:3]:
        await backend.log.append(commit)
    await backend.sweep(EPOCH + 9 * DAY)
    assert (await rows(backend))["prefixes"] == 2 * PARTS_PER_BATCH + 1
    for commit in commits[3:]:
        await backend.log.append(commit)
    key = ExecutionKey("default", second.workflow_id)
    while True:
        swept = await backend.log.sweep(EPOCH + 9 * DAY)  # type: ignore[attr-defined]
        page = await backend.log.read_events(key, second.run_id, BEGINNING, 10_000)
        assert not page.events
        if not swept.more:
            break
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_parts_of_a_run_that_never_came_to_be_go_after_a_day(path: str | Path) -> None:
    backend = embedded_backend(path)
    open_run, reset_run, never = SampleRun(1), SampleRun(2), SampleRun(1, run=7)
    await append(backend, open_run, 2)
    await append(backend, SampleRun(2, run=1))
    await put_parts(backend, never, PARTS_PER_BATCH + 1)
    await put_parts(backend, reset_run, 2)
    for commit in list(SampleRun(2, first_seq=6).commits())[:2]:
        await backend.log.append(commit)
    await backend.sweep(EPOCH + DAY - timedelta(minutes=1))
    assert (await rows(backend))["prefixes"] == PARTS_PER_BATCH + 3
    for _ in range(2):
        await backend.sweep(EPOCH + 2 * DAY)
        assert (await rows(backend))["prefixes"] == 2
    await backend.close()


async def test_each_namespace_keeps_its_runs_as_long_as_it_says(path: str | Path) -> None:
    """Also where a batch has room for few of them, and where the last in order has the most."""
    backend = embedded_backend(path)
    for number, namespace in enumerate(("a", "b", "c")):
        for index in range(60 if namespace == "c" else 2):
            await append(backend, SampleRun(100 * number + index, namespace=namespace))
    own = {"a": EPOCH, "c": EPOCH + 9 * DAY}
    assert {key.namespace for key in await backend.sweep(EPOCH, own)} == {"c"}
    assert (await rows(backend))["runs"] == 4
    swept = await backend.sweep(EPOCH + DAY, own)
    assert [key.namespace for key in swept] == ["b", "b"]
    assert {key.namespace for key in await backend.sweep(EPOCH + DAY)} == {"a"}
    assert await rows(backend) == dict.fromkeys(ALL_TABLES, 0)
    await backend.close()


async def test_a_sweep_does_not_read_what_other_namespaces_keep(path: str | Path) -> None:
    """The plan of its query goes by namespace and time, so what one keeps for long costs the others nothing."""
    backend = embedded_backend(path)

    def plan(connection: object) -> list[str]:
        steps = connection.execute(  # type: ignore[attr-defined]
            "EXPLAIN QUERY PLAN SELECT id FROM runs WHERE namespace = ? AND close_us < ? AND status <> 'RUNNING' "
            "AND (close_us, id) > (?, ?) ORDER BY close_us, id LIMIT 5",
            ("a", 1, 0, 0),
        )
        return [step[-1] for step in steps]

    (step,) = await on_writer(backend, plan)
    assert "runs_by_close (namespace=? AND close_us" in step
    await backend.close()
