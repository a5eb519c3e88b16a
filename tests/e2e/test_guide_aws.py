"""The guide to AWS as people follow it: its lines for the emulator go to a shell as they stand there."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.aws.moto_server import DUMMY_ENVIRONMENT
from tests.support.processes import ROOT, SOURCES, free_port

GUIDE = (ROOT / "docs" / "guide-aws.md").read_text(encoding="utf-8")
SERVING = """until python -c 'import socket; socket.create_connection(("127.0.0.1", {port}))' 2> {null}
do sleep 0.2; done"""
"""A person sees that a server is there before typing on."""

END = 'for job in $(jobs -p); do kill -9 -- "-$job"; done'


def section(heading: str) -> list[str]:
    """The lines of code under a heading, those that go on joined."""
    text = re.search(rf"^## {heading}\n(.*?)^## ", GUIDE, re.MULTILINE | re.DOTALL)
    assert text is not None
    code = "\n".join(re.findall(r"^    (.*)$", text.group(1), re.MULTILINE))
    return code.replace("\\\n", "").splitlines()


def entry_points(folder: Path) -> Path:
    """Those that the sources declare, for a `stepwell` whose environment has others installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    made = folder / "stepwell_server-0.1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: stepwell-server\nVersion: 0.1.0\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (made / "entry_points.txt").write_text("\n".join(groups))
    return folder


def copied(folder: Path) -> None:
    """What the lines use of a clone, so that they write nowhere else."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "tests" / "support").mkdir(parents=True)
    shutil.copytree(ROOT / "tests" / "support" / "aws", folder / "tests" / "support" / "aws")


def test_from_nothing_to_an_order_on_an_emulator(tmp_path: Path) -> None:
    lines = [line for line in section("On an emulator") if not line.startswith(("python3 -m venv", "pip install"))]
    assert len(lines) == 10
    emulator, server = free_port(), free_port()
    script = ["set -me", f"trap '{END}' EXIT"]
    for line in lines:
        script.append(line.replace("7401", str(emulator)).replace("--aws &", f"--aws --port {server} &"))
        if "moto_process" in line:
            script.append(SERVING.format(port=emulator, null=os.devnull))
        if "server --aws" in line:
            script.append(SERVING.format(port=server, null=os.devnull))
    text = "\n".join(script).replace("order_fulfilment.worker", "order_fulfilment.worker --address $STEPWELL_ADDRESS")
    copied(tmp_path)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = os.pathsep.join([str(entry_points(tmp_path)), SOURCES])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "STEPWELL_"))}
    quiet = {name: value for name, value in DUMMY_ENVIRONMENT.items() if value in ("true", os.devnull)}
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=tmp_path,
        env={**kept, **quiet, "PATH": path, "PYTHONPATH": sources, "STEPWELL_ADDRESS": f"http://127.0.0.1:{server}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status": "shipped"' in done.stdout and "TRACK-1" in done.stdout, done.stdout + done.stderr
    bucket = lines[3].partition("=")[2]
    assert f"STEPWELL_BUCKET={bucket}\n" in done.stdout, "the guide names the bucket that bootstrap makes"
    assert "Traceback" not in done.stderr, done.stderr


def test_what_it_shows_of_keys_is_what_a_server_reads(tmp_path: Path) -> None:
    from stepwell_server.entrypoints.access_keys import read_access_keys

    (line,) = [line for line in section("A container of your own") if line.startswith("{")]
    keys = tmp_path / "keys.json"
    keys.write_text(line)
    keys.chmod(0o600)
    (key,) = read_access_keys(keys).keys
    assert key.key_id == "AKTEAM"
