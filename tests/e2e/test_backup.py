"""``stepwell backup`` beside a running engine: the copy is a database on which every workflow goes on."""

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from stepwell.client import Client
from stepwell.worker import Worker

from stepwell_server.entrypoints import backup
from tests.e2e.backup_workflows import Waits

STEPWELL = Path(sys.executable).with_name("stepwell")


async def test_a_copy_made_beside_its_owner_goes_on(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with await Client.connect(f"sqlite:///{tmp_path}/orders.db") as client:
        async with Worker(client, task_queue="q", workflows=[Waits]):
            await client.start_workflow(Waits.run, id="w", task_queue="q")
            await client.get_workflow_handle("w").signal(Waits.add, "before the copy")
            assert await client.get_workflow_handle("w").query(Waits.seen) == ["before the copy"]
            done = subprocess.run(
                [str(STEPWELL), "backup", "--db", str(tmp_path / "orders.db"), str(copy)],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            assert str(copy) in done.stdout
            await client.get_workflow_handle("w").signal(Waits.add, "after the copy")
    async with await Client.connect(f"sqlite:///{copy}") as client:
        async with Worker(client, task_queue="q", workflows=[Waits]):
            handle = client.get_workflow_handle("w")
            await handle.signal(Waits.add, "end")
            assert await handle.result() == ["before the copy", "end"]


def test_a_terminal_is_shown_how_far_the_copy_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, part = tmp_path / "orders.db", tmp_path / "copy.db.part"
    whole.write_bytes(b"x" * 4_000)
    part.write_bytes(b"x" * 1_000)
    written, over = io.StringIO(), threading.Event()
    monkeypatch.setattr(written, "flush", over.set)  # the first line is enough
    backup.watch(whole, part, over, written)
    assert written.getvalue() == f"\r  [{'#' * 7}{'.' * 23}] 1,000 of about 4,000 bytes\r\x1b[K"


def test_refusals_are_sentences(tmp_path: Path, capsys) -> None:
    (tmp_path / "there.db").write_bytes(b"")
    assert backup.main(["--db", str(tmp_path / "none.db"), str(tmp_path / "copy.db")]) == 3
    assert "there is no such file" in capsys.readouterr().err
    assert not (tmp_path / "copy.db").exists()
