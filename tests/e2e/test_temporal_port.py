"""``--temporal-port``: Temporal's SDK finds the engine there, and what would let in others does not start."""

import json
import re
import sys
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import TLSConfig
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from stepwell_server.entrypoints import server
from tests.support.aws.cells import Cell
from tests.support.certificates import authority
from tests.support.processes import SOURCES, running

SERVER = [sys.executable, "-c", "import sys; from stepwell_server.entrypoints.server import main; sys.exit(main())"]
DEV = [sys.executable, "-c", "import sys; from stepwell_server.entrypoints.dev import main; sys.exit(main())"]


@activity.defn
async def pay() -> str:
    return "paid"


@workflow.defn
class Order:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity(pay, start_to_close_timeout=timedelta(minutes=1))


async def test_the_sdk_connects_where_the_banner_says(tmp_path: Path) -> None:
    with running([*DEV, "--port", "0", "--temporal-port", "0"], tmp_path) as process:
        found = re.search(r"Temporal (127\.0\.0\.1:(\d+))", process.wait_for("  Temporal "))
        assert found is not None
        client = await Client.connect(found[1])
        assert await client.service_client.check_health()
        options = ["--port", "0", "--temporal-port", found[2], "--db", ":memory:"]
        with running([*DEV, *options], tmp_path) as second:
            second.wait_for("choose another --temporal-port")
            assert second.wait() == 3


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keys and certificates, in the working directory."""
    monkeypatch.chdir(tmp_path)
    authority().issue("server").written(tmp_path, "server")
    (tmp_path / "ca.pem").write_bytes(authority().certificate)
    signing = {"key_id": "AKTEAM", "secret": "a secret of more than twenty characters", "allow": ["*"]}
    granted = {"name": "all", "namespaces": ["*"], "roles": ["administrator", "starter", "reader", "worker"]}
    for name, keys in {
        "signing": {"keys": [signing]},
        "gateway": {"api_keys": [{**granted, "sha256": sha256(b"of all").hexdigest()}]},
        "certificates": {"certificates": [{**granted, "subject": "billing"}]},
    }.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(keys))
        path.chmod(0o600)
    return tmp_path


TLS = "--temporal-tls-cert server.pem --temporal-tls-key server-key.pem"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--host 0.0.0.0", "give the access keys with --keys FILE"),
        ("--host 0.0.0.0 --keys gateway.json", "without TLS everybody on the way"),
        ("--keys signing.json", 'lets nobody call at --temporal-port: add "api_keys"'),
        (f"--keys certificates.json {TLS}", "lets nobody call at --temporal-port: give --temporal-client-ca"),
        (f"{TLS} --temporal-client-ca ca.pem", "needs --keys FILE"),
        ("--keys gateway.json --temporal-client-ca ca.pem", "needs --temporal-tls-cert and --temporal-tls-key"),
        (f"--keys gateway.json {TLS} --temporal-client-ca gateway.json", "no certificates of authorities"),
        ("--temporal-tls-cert server.pem", "go together"),
        ("--temporal-tls-cert ca.pem --temporal-tls-key server-key.pem", "no certificate chain and its private key"),
        ("--tls-cert ca.pem --tls-key server-key.pem", "no certificate chain and its private key"),
    ],
)
def test_what_would_let_in_others_or_nobody_does_not_start(
    files: Path, options: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert server.main([*options.split(), "--port", "0", "--temporal-port", "0", "--db", ":memory:"]) == 3
    assert why in capsys.readouterr().err


def test_its_certificates_go_with_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert server.main([*TLS.split(), "--port", "0", "--db", ":memory:"]) == 3
    assert "--temporal-tls-cert goes with --temporal-port" in capsys.readouterr().err


async def test_on_the_cell_of_an_account_a_workflow_runs_by_an_api_key_over_tls(cell: Cell, files: Path) -> None:
    options = ["--aws", "--port", "0", "--temporal-port", "0", "--keys", "gateway.json"]
    tls = ["--tls-cert", "server.pem", "--tls-key", "server-key.pem"]
    with running([*SERVER, *options, *tls], files, PYTHONPATH=SOURCES, **cell.variables) as process:
        found = re.search(r"Temporal (127\.0\.0\.1:\d+) over TLS, by API keys", process.wait_for("  Temporal ", 60))
        assert found is not None
        trusted = TLSConfig(server_root_ca_cert=authority().certificate)
        client = await Client.connect(found[1], tls=trusted, api_key="of all")
        async with Worker(
            client, task_queue="q", workflows=[Order], activities=[pay], workflow_runner=UnsandboxedWorkflowRunner()
        ):
            assert await client.execute_workflow(Order.run, id="order-1", task_queue="q") == "paid"
        with pytest.raises(RuntimeError, match="not known to this server"):
            await Client.connect(found[1], tls=trusted, api_key="of nobody")
        assert process.stop() == 0
    assert "of all" not in process.text and "of nobody" not in process.text
