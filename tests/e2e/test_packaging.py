"""The wheels of both distributions work where nothing else is: ``stepwell dev`` serves and the example runs."""

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.installed import ROOT, build_wheels, make_environment
from tests.support.processes import free_port, running

EXAMPLES = str(ROOT / "examples")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def python(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("environment") / "venv", wheels)


def test_wheels_hold_each_its_own_package_and_the_licence(wheels: list[Path]) -> None:
    tops = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        tops[wheel.name.split("-")[0]] = {name.partition("/")[0] for name in names if ".dist-info" not in name}
        assert any(name.endswith("licenses/LICENSE") for name in names)
        assert not [name for name in names if "__pycache__" in name]

    assert tops == {"stepwell": {"stepwell"}, "stepwell_server": {"stepwell_server"}}
    with zipfile.ZipFile(next(wheel for wheel in wheels if wheel.name.startswith("stepwell-"))) as archive:
        assert "stepwell/py.typed" in archive.namelist()


def test_the_environment_runs_the_wheels_and_not_the_source_tree(python: Path, tmp_path: Path) -> None:
    code = "import stepwell, stepwell_server; print(stepwell.__file__, stepwell_server.__file__)"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert all(path.startswith(str(python.parents[1])) for path in done.stdout.split())


def test_the_example_runs_in_one_process(python: Path, tmp_path: Path) -> None:
    command = [python, "-m", "order_fulfilment.demo", "--folder", tmp_path / "demo"]
    with running(command, tmp_path, PYTHONPATH=EXAMPLES) as demo:
        assert demo.wait(40) == 0, demo.text
    assert re.search(r"order-1001 +result: shipped, pay-\d, TRACK-77", demo.text)


def test_stepwell_dev_serves_the_example(python: Path, tmp_path: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    stepwell = python.with_name("stepwell")
    server_command = [stepwell, "dev", "--db", tmp_path / "orders.db", "--port", str(port)]
    with running(server_command, tmp_path) as server:
        server.wait_for(str(port))
        worker_command = [python, "-m", "order_fulfilment.worker", "--address", address, "--shop", tmp_path / "shop.db"]
        starter_command = [python, "-m", "order_fulfilment.starter", "order-1", "--address", address]
        with (
            running(worker_command, tmp_path, PYTHONPATH=EXAMPLES) as worker,
            running(starter_command, tmp_path, PYTHONPATH=EXAMPLES) as starter,
        ):
            worker.wait_for("stock reserved")
            shipment = '{"tracking_number": "TRACK-1"}'
            signal = ["workflow", "signal", "order-1", "--name", "shipped", "--input", shipment, "--address", address]
            subprocess.run([stepwell, *signal], cwd=tmp_path, check=True, timeout=20)
            assert starter.wait() == 0, starter.text
            assert "order-1: shipped, payment pay-1, TRACK-1" in starter.text
            assert worker.stop() == 0, worker.text
        assert server.stop() == 0, server.text
