"""localstack/: the hook that makes the tables, as the emulators run it, and what the compose file mounts for it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.tables import table_definitions
from tests.support.aws.ministack import REGION, MiniStack

FOLDER = Path(__file__).resolve().parents[3] / "localstack"
HOOK = FOLDER / "init" / "ready.d" / "10-stepwell.py"


@pytest.fixture(scope="module")
def emulator() -> Iterator[MiniStack]:
    emulator = MiniStack(Path(os.environ["MINISTACK_PYTHON"]), enforces_access=False)
    yield emulator
    emulator.stop()


def run_hook(emulator: MiniStack, python: str) -> str:
    """By exec, as LocalStack does it, with what the compose file mounts and nothing else of this clone."""
    code = f"exec(compile(open({str(HOOK)!r}).read(), 'hook', 'exec'), {{}})"
    sources = FOLDER.parent
    done = subprocess.run(
        [python, "-I", "-c", code],
        env={**emulator.variables(), "STEPWELL_SOURCES": str(sources), "STEPWELL_CELL": "local"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "python", [os.environ.get("MINISTACK_PYTHON", ""), sys.executable], ids=["emulator", "product"]
)
def test_the_hook_makes_a_cell_and_may_run_again(emulator: MiniStack, python: str) -> None:
    assert "cell local are there" in run_hook(emulator, python)
    assert "cell local are there" in run_hook(emulator, python)
    key = emulator.variables()
    session = boto3.Session(key["AWS_ACCESS_KEY_ID"], key["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
    dynamodb = session.client("dynamodb", endpoint_url=emulator.url)
    for definition in table_definitions(Names("local")):
        table = dynamodb.describe_table(TableName=definition["TableName"])["Table"]
        assert table["KeySchema"] == definition["KeySchema"]
    queues = session.client("sqs", endpoint_url=emulator.url).list_queues(QueueNamePrefix="stepwell-local")["QueueUrls"]
    assert {url.rpartition("/")[2] for url in queues} == {"stepwell-local-timers", "stepwell-local-feed-failures"}
    buckets = session.client("s3", endpoint_url=emulator.url).list_buckets()["Buckets"]
    assert [each["Name"] for each in buckets] == [f"stepwell-local-000000000000-{REGION}"]


def test_the_compose_file_mounts_what_the_hook_needs() -> None:
    text = (FOLDER / "compose.yaml").read_text()
    for line in ("./init/ready.d:/etc/localstack/init/ready.d:ro", "../services:/opt/stepwell/stepwell_server:ro"):
        assert line in text
    assert (FOLDER / "init" / "ready.d").is_dir()
    assert not list(FOLDER.rglob("__init__.py")), "the folder would shadow the package localstack"
    pinned = (FOLDER.parent / "requirements" / "ministack.in").read_text()
    assert "ministack==1.5.33" in pinned and "ministackorg/ministack:1.5.33" in text
    assert text.count("127.0.0.1:4566:4566") == 1, "one port, on this machine only"
