"""Database files that cannot be used, or stop being usable, and clocks that jump: from the client and the command line.

Shown elsewhere, and not repeated here:

- files that are not ours (text, other applications, directories, devices, newer releases): ``integration/sqlite/
  test_file_safety.py``, by the client ``test_a_file_that_is_not_ours_is_refused`` in
  ``unit/sdk/client/test_client.py``, by the server ``test_a_file_that_is_not_ours`` in ``e2e/test_dev_server.py``;
- two owners and looking beside the owner: ``integration/sqlite/test_ownership.py``,
  ``test_a_database_that_another_process_owns`` in ``e2e/test_dev_server.py``,
  ``test_a_file_is_looked_at_beside_its_owner`` in ``e2e/test_cli.py``;
- writes that the operating system itself refuses, and a full disk on opening: ``integration/sqlite/test_disk_full.py``;
- logs cut or damaged anywhere: ``integration/sqlite/test_crash.py``;
- clocks that jump under every interleaving: ``simulation/nemesis.py``.
"""

import asyncio
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.cli import main
from stepwell.client import Client, RPCError, WorkflowHandle
from stepwell.transport.http import HttpTransport
from stepwell.worker import Worker

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import DatabaseRefused, embedded_backend, file_committer
from stepwell_server.entrypoints.embedded import open_transport
from tests.integration.sqlite.helpers import on_writer
from tests.support.api_server import served_api

SOON = timedelta(seconds=10)


@activity.defn
async def double(value: int) -> int:
    return value * 2


@workflow.defn
async def doubled(value: int) -> int:
    for _ in range(3):
        value = await workflow.execute_activity(double, value, start_to_close_timeout=SOON)
    return value


def _worker(client: Client, *workflows: Any, **options: Any) -> Worker:
    activities = options.pop("activities", [double])
    return Worker(client, task_queue="q", workflows=workflows or [doubled], activities=activities, **options)


async def _start(client: Client, number: int) -> WorkflowHandle[int]:
    return await client.start_workflow(doubled, number, id=f"w{number}", task_queue="q")


# --- a full disk ---


async def _limit_pages(backend: Backend, more: int | None) -> None:
    def limit(connection: Any) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {1_000_000 if more is None else pages + more}").fetchall()

    await on_writer(backend, limit)


async def _start_until_refused(client: Client, acknowledged: list[WorkflowHandle[int]]) -> None:
    while True:
        acknowledged.append(await _start(client, len(acknowledged)))


async def test_a_full_disk(tmp_path: Path) -> None:
    """Refused at the call, in words that say to try again; what was acknowledged stays, and finishes when there is
    room."""
    async with served_api(str(tmp_path / "orders.db")) as served:
        client = Client(HttpTransport(served.address, total_wait=0.1))
        await _limit_pages(served.hosted.backend, 10)
        acknowledged: list[WorkflowHandle[int]] = []
        with pytest.raises(RPCError, match="full; free some space, then the engine goes on by itself") as full:
            await _start_until_refused(client, acknowledged)
        assert acknowledged
        assert full.value.code == "UNAVAILABLE"
        assert full.value.retryable
        refused = client.get_workflow_handle(f"w{len(acknowledged)}")
        with pytest.raises(RPCError, match="no such workflow"):
            await refused.describe()  # nothing was written
        assert (await acknowledged[-1].describe()).id == acknowledged[-1].id, "reading goes on"
        async with _worker(client):  # it cannot record anything yet
            await asyncio.sleep(0.3)
            await _limit_pages(served.hosted.backend, None)
            async with asyncio.timeout(60):
                for number, handle in enumerate(acknowledged):
                    assert await handle.result() == number * 8
                again = await _start(client, len(acknowledged))
                assert await again.result() == len(acknowledged) * 8
        await client.close()


# --- files that stop being usable ---


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be moved there")
async def test_a_file_that_is_moved_away_while_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite would write on into a file that nobody can open again."""
    monkeypatch.setattr(file_committer, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "orders.db"
    async with await Client.connect(f"sqlite:///{path}") as client:
        async with _worker(client):
            await (await _start(client, 1)).result()
            path.rename(tmp_path / "elsewhere.db")
            with pytest.raises(RPCError, match=r"orders\.db was deleted, moved or replaced.*move it back") as gone:
                await _start(client, 2)
            assert gone.value.retryable
            path.write_bytes(b"")
            with pytest.raises(RPCError, match="replaced"):
                await _start(client, 2)
            (tmp_path / "elsewhere.db").rename(path)
            assert await (await _start(client, 2)).result() == 16
    async with await Client.connect(f"sqlite:///{path}") as client:
        assert sorted([run.id async for run in client.list_workflows()]) == ["w1", "w2"]


async def _database(path: Path) -> None:
    async with await Client.connect(f"sqlite:///{path}") as client, _worker(client):
        for number in range(20):
            await (await _start(client, number)).result()


def _damage_the_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8_192)
        file.write(b"\xa5" * (path.stat().st_size - 8_192))


def _cut(path: Path) -> None:
    os.truncate(path, 20_000)


@pytest.mark.parametrize("damage", [_damage_the_middle, _cut])
async def test_a_damaged_file(
    tmp_path: Path, damage: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "orders.db"
    await _database(path)
    damage(path)
    before = path.read_bytes()
    for _ in range(2):  # the second time as well: the first let the file go
        with pytest.raises(RPCError, match=r"cannot open .*orders\.db: .*malformed.*restore a backup") as refused:
            await Client.connect(f"sqlite:///{path}")
        assert refused.value.code == "FAILED_PRECONDITION"
        assert not refused.value.retryable
    for command in (
        ["workflow", "list", "--address", f"sqlite:///{path}"],
        ["dev", "--db", str(path), "--port", "0"],
    ):
        with pytest.raises(SystemExit) as ended:
            await asyncio.to_thread(main, command)
        assert ended.value.code not in (0, None)
        said = capfd.readouterr().err
        assert "malformed" in said
        assert "Traceback" not in said
    assert path.read_bytes()[8_192:] == before[8_192:]  # in front is a count of openings


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
async def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loop.db").symlink_to(tmp_path / "loop.db")
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere" / "a.db")
    (tmp_path / "locked.db-lock").mkdir()
    os.mkfifo(tmp_path / "pipe.db")
    for name, said in (
        ("loop.db", "choose another path"),
        ("dangling.db", "there is no directory.*make it, or fix the path"),
        ("locked.db", "lock file.*choose another path"),
        ("pipe.db", "not a regular file; name a file"),
        ("a" * 300, "File name too long; choose another path"),
    ):
        with pytest.raises(RPCError, match=said) as refused:
            await Client.connect(f"sqlite:///{tmp_path}/{name}")
        assert refused.value.code == "FAILED_PRECONDITION"


def _as_nobody(folder: Path, said: "multiprocessing.Queue[str]") -> None:
    """In a process of its own, which gives up its rights when it is root."""
    if os.geteuid() == 0:
        os.setuid(65_534)
    for name in ("new.db", "old.db"):
        try:
            embedded_backend(folder / name)
        except DatabaseRefused as refusal:
            said.put(str(refusal))
        else:
            said.put(f"{name} was opened")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
async def test_a_folder_that_may_not_be_written() -> None:
    folder = Path(tempfile.mkdtemp(prefix="stepwell-test-"))
    try:
        await _database(folder / "old.db")
        for entry in folder.iterdir():
            entry.chmod(0o444)
        folder.chmod(0o555)
        context = multiprocessing.get_context("fork")
        said: multiprocessing.Queue[str] = context.Queue()
        child = context.Process(target=_as_nobody, args=(folder, said))
        child.start()
        for _ in range(2):
            refusal = await asyncio.to_thread(said.get, timeout=20)
            assert "give this user write permission on the file and its folder" in refusal
        child.join(10)
        said.close()
        said.join_thread()
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# --- clocks ---


class JumpingClock:
    """Wall time that jumps; seconds inside this process go on evenly, as they do while the machine sleeps."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@asynccontextmanager
async def _with_clock(clock: JumpingClock) -> AsyncIterator[Client]:
    async with Client(await open_transport(":memory:", clock=clock)) as client:
        yield client


@workflow.defn
async def naps(seconds: float) -> str:
    began = workflow.now()
    await workflow.sleep(seconds)
    return "in time" if (workflow.now() - began).total_seconds() >= seconds else "too early"


async def test_a_machine_that_sleeps_for_weeks() -> None:
    """On waking, what became due meanwhile fires at once, and nothing early."""
    clock = JumpingClock()
    async with _with_clock(clock) as client, _worker(client, naps):
        due = await client.start_workflow(naps, timedelta(days=14).total_seconds(), id="due", task_queue="q")
        later = await client.start_workflow(naps, timedelta(days=30).total_seconds(), id="later", task_queue="q")
        async with asyncio.timeout(30):
            while not (await later.describe()).pending_timers:
                await asyncio.sleep(0.02)
        clock.offset = timedelta(days=15)
        assert await asyncio.wait_for(due.result(), 30) == "in time"
        assert (await later.describe()).pending_timers
        clock.offset = timedelta(days=31)
        assert await asyncio.wait_for(later.result(), 30) == "in time"


async def test_a_clock_that_goes_back_and_forth_between_steps() -> None:
    """Runs go on without waiting for the clock to catch up, and no history runs backwards."""
    clock = JumpingClock()

    @activity.defn
    async def jump(hours: int) -> int:
        clock.offset += timedelta(hours=hours)
        return hours

    @workflow.defn
    async def jumps(hours: list[int]) -> int:
        total = 0
        for step in hours:
            total += await workflow.execute_activity(jump, step, start_to_close_timeout=timedelta(days=30))
        return total

    async with _with_clock(clock) as client, _worker(client, jumps, activities=[jump]):
        handle = await client.start_workflow(jumps, [-1, 3, -24, 0, 5, -100, 1], id="w", task_queue="q")
        assert await asyncio.wait_for(handle.result(), 30) == -116
        times = [event.event_time for event in (await handle.fetch_history()).events]
        assert times == sorted(times)


async def test_an_activity_that_is_slept_over_is_tried_again() -> None:
    clock = JumpingClock()
    attempts: list[int] = []

    @activity.defn
    async def slow() -> int:
        attempts.append(activity.info().attempt)
        if activity.info().attempt == 1:
            clock.offset += timedelta(days=1)
            await asyncio.sleep(30)
        return activity.info().attempt

    @workflow.defn
    async def patient() -> int:
        return await workflow.execute_activity(slow, start_to_close_timeout=timedelta(hours=1))

    async with _with_clock(clock) as client:
        async with _worker(client, patient, activities=[slow], graceful_shutdown_timeout=timedelta(0)):
            result = await asyncio.wait_for(client.execute_workflow(patient, id="w", task_queue="q"), 30)
    assert result == 2
    assert attempts == [1, 2]
