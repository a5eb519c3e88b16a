"""``stepwell server`` as a real process: who may come in does, over TLS and by a signature; what would let in others
does not start, and says why."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from stepwell.client import Client, RPCError

from tests.support.aws.cells import Cell
from tests.support.certificates import authority
from tests.support.processes import SOURCES, free_port, running

SECRET = "a secret of more than twenty characters"
KEYS = {"keys": [{"key_id": "AKTEAM", "secret": SECRET, "allow": ["*"]}]}
COMMAND = [sys.executable, "-c", "import sys; from stepwell_server.entrypoints.server import main; sys.exit(main())"]
# As `stepwell server` runs it; the entry point of an installed clone may be of other sources.


def keys_file(folder: Path, content: Any = KEYS, mode: int = 0o600) -> Path:
    path = folder / "keys.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


async def test_signed_requests_over_tls_are_served_and_others_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    chain, private = authority().issue("server").written(tmp_path, "server")
    (tmp_path / "ca.pem").write_bytes(authority().certificate)
    options = ["--host", "0.0.0.0", "--port", str(port), "--keys", keys_file(tmp_path)]
    tls = ["--tls-cert", chain, "--tls-key", private]
    with running([*COMMAND, *options, *tls], tmp_path, PYTHONPATH=SOURCES) as server:
        server.wait_for("signed requests, by the access keys")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKTEAM")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        address = f"https://127.0.0.1:{port}"
        async with await Client.connect(address, sign=True) as client:
            handle = await client.start_workflow("order", id="order-1", task_queue="orders")
            assert (await handle.describe()).workflow_type == "order"
        with pytest.raises(RPCError, match="not signed"):
            await Client.connect(address)
        server.process.terminate()
        assert server.wait() == 0


async def test_on_loopback_it_needs_no_keys(tmp_path: Path) -> None:
    port = free_port()
    with running([*COMMAND, "--port", str(port)], tmp_path, PYTHONPATH=SOURCES) as server:
        server.wait_for("this machine only")
        async with await Client.connect(f"http://127.0.0.1:{port}") as client:
            assert (await client.system_info()).database.endswith("stepwell.db")


async def test_the_cell_of_an_account_is_served(cell: Cell, tmp_path: Path) -> None:
    port = free_port()
    variables = {"STEPWELL_CELL": cell.names.cell, "STEPWELL_BUCKET": cell.bucket, "PYTHONPATH": SOURCES}
    options = ["--aws", "--port", str(port), "--log-format", "json"]
    with running([*COMMAND, *options], tmp_path, **variables) as server:
        server.wait_for(f"dynamodb:stepwell-{cell.names.cell}", 60)
        async with await Client.connect(f"http://127.0.0.1:{port}") as client:
            handle = await client.start_workflow("order", id="order-1", task_queue="orders")
            assert (await handle.describe()).workflow_type == "order"
        server.process.terminate()
        assert server.wait() == 0
    lines = [json.loads(line) for line in server.lines if line.startswith("{")]
    (told,) = [line for line in lines if line.get("operation") == "StartWorkflow"]
    assert told["service_requests"] == [1.0] and told["cell"] == cell.names.cell, "what was gathered is told at the end"


def refused(folder: Path, *options: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [*COMMAND, *map(str, options)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCES, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and SECRET not in done.stderr
    return done.stderr


def _key(**changes: Any) -> dict[str, Any]:
    return {"keys": [{**KEYS["keys"][0], **changes}]}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "requests have to be signed"),
        (["--host", "0.0.0.0", "--keys", "keys.json"], "without TLS everybody on the way"),
        (["--tls-cert", "cert.pem"], "go together"),
        (["--tls-cert", "none.pem", "--tls-key", "none.pem"], "none.pem is not there"),
        (["--keys", "none.json"], "cannot be read"),
        (["--log-format", "json"], "goes with --aws"),
    ],
)
def test_what_would_let_others_in_does_not_start(tmp_path: Path, options: Sequence[str], says: str) -> None:
    keys_file(tmp_path)
    assert says in refused(tmp_path, *options)


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (KEYS, 0o644, "chmod 600"),
        ("not json", 0o600, "no file of access keys"),
        ({"keys": []}, 0o600, "nobody could call"),
        ({"keys": KEYS["keys"] * 2}, 0o600, "there twice"),
        (_key(secret="short"), 0o600, "shorter than 20"),
        (_key(allow=[]), 0o600, "may call nothing"),
        (_key(allows=["*"]), 0o600, "no file of access keys"),
    ],
)
def test_a_file_of_keys_that_is_not_right_is_refused_without_a_word_of_the_secret(
    tmp_path: Path, content: Any, mode: int, says: str
) -> None:
    assert says in refused(tmp_path, "--keys", keys_file(tmp_path, content, mode))


def test_a_cell_that_is_not_there_is_named(cell: Cell, tmp_path: Path) -> None:
    assert "stepwell aws bootstrap" in refused(tmp_path, "--aws", STEPWELL_CELL="nowhere")
    assert "is no name of a cell" in refused(tmp_path, "--aws", STEPWELL_CELL="No Where")
