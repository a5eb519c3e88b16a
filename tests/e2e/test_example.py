"""The example as people meet it: the demo in one process, the demo with kills, and server and worker on their own."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from order_fulfilment.shop import Shop
from tests.support.processes import Running, free_port, running

ROOT = Path(__file__).resolve().parents[2]
STEPWELL = Path(sys.executable).with_name("stepwell")
PYTHONPATH = os.pathsep.join(str(ROOT / part) for part in ("examples", "sdk", "."))


def _demo(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "order_fulfilment.demo", "--folder", folder / "demo db", *options]
    with running(command, folder, PYTHONPATH=PYTHONPATH) as demo:
        assert demo.wait(60) == 0, demo.text
    return demo.text


def _check_outcome(text: str, folder: Path) -> None:
    """Each order ended as it should, and the payment service took the money of each once."""
    assert re.search(r"order-1001 +result: shipped, pay-\d, TRACK-77", text)
    assert re.search(r"order-1002 +failed as it should: OutOfStock: 1 x piano asked for, 0 left", text)
    assert re.search(r"order-1003 +result: with support, pay-\d, case-1", text)
    charges = {charge.order_id: charge for charge in Shop(folder / "demo db" / "shop.db").charges()}
    assert len(Shop(folder / "demo db" / "shop.db").charges()) == 3
    assert [charges[f"order-100{n}"].refunded for n in (1, 2, 3)] == [False, True, False]
    assert charges["order-1001"].requests == 3


def test_demo_shows_steps_retries_timer_signal_result_and_where_to_look(tmp_path: Path) -> None:
    folder = tmp_path / "a folder's name"
    folder.mkdir()
    text = _demo(folder)

    _check_outcome(text, folder)
    for part in (
        "(attempt 3)",
        "stock reserved, waiting",
        "signal sent",
        "not shipped in 0:00:03",
        "workflow show order-1001",
    ):
        assert part in text
    shown = next(shlex.split(line)[1:] for line in text.splitlines() if " workflow show order-1003" in line)
    done = subprocess.run([STEPWELL, *shown], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "TimerFired" in json.dumps(json.loads(done.stdout))


@pytest.mark.skipif(
    not (Path(sys.prefix) / ".stepwell-project").exists(), reason="runs where scripts/ made this environment"
)
def test_the_readmes_command_runs_the_demo(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "demo.py", "--folder", tmp_path / "demo db"]
    with running(command, tmp_path, STEPWELL_VENV=sys.prefix) as demo:
        assert demo.wait(60) == 0, demo.text
    _check_outcome(demo.text, tmp_path)
    assert "Installing" not in demo.text


def test_demo_with_kills_finishes_every_order_and_charges_once(tmp_path: Path) -> None:
    text = _demo(tmp_path, "--kill")

    _check_outcome(text, tmp_path)
    assert text.count("kill -9") == 2
    assert text.count("is in the file already") >= 2


def test_demo_refuses_a_folder_with_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    command = [sys.executable, "-m", "order_fulfilment.demo", "--folder", tmp_path]
    with running(command, tmp_path, PYTHONPATH=PYTHONPATH) as demo:
        assert demo.wait() == 1
    assert "name another folder" in demo.text
    assert (tmp_path / "letter.txt").read_text() == "mine"


def test_separate_server_and_worker_survive_kills(tmp_path: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"

    def start_server() -> Running:
        return Running([STEPWELL, "dev", "--db", "orders.db", "--port", str(port)], tmp_path, {})

    def start_worker() -> Running:
        command = [sys.executable, "-m", "order_fulfilment.worker", "--address", address]
        return Running(command, tmp_path, {"PYTHONPATH": PYTHONPATH})

    server, worker = start_server(), start_worker()
    try:
        server.wait_for(str(port))
        starter_command = [sys.executable, "-m", "order_fulfilment.starter", "order-7", "--address", address]
        with running(starter_command, tmp_path, PYTHONPATH=PYTHONPATH) as starter:
            worker.wait_for("stock reserved")
            server.close()
            worker.close()
            server, worker = start_server(), start_worker()
            server.wait_for(str(port))
            sent = ["workflow", "signal", "order-7", "--name", "shipped", "--input", '{"tracking_number": "T"}']
            subprocess.run([STEPWELL, *sent, "--address", address], cwd=tmp_path, check=True, timeout=20)
            assert starter.wait() == 0, starter.text
            assert "order-7: shipped, payment pay-1, T" in starter.text
        assert worker.stop() == 0, worker.text
        assert server.stop() == 0, server.text
    finally:
        server.close()
        worker.close()
    assert len(Shop(tmp_path / "shop.db").charges()) == 1
