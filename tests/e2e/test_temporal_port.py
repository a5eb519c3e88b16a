"""``--temporal-port``: Temporal's SDK finds the engine there, and what would let in others does not start."""

import re
import sys
from pathlib import Path

import pytest
from temporalio.client import Client

from stepwell_server.entrypoints import server
from tests.support.processes import running

DEV = [sys.executable, "-c", "import sys; from stepwell_server.entrypoints.dev import main; sys.exit(main())"]


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


@pytest.mark.parametrize(
    ("options", "why"),
    [(["--host", "0.0.0.0"], "credentials"), (["--keys", "keys.json"], "credentials")],
)
def test_others_could_come_in(options: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert server.main([*options, "--port", "0", "--temporal-port", "0", "--db", ":memory:"]) == 3
    assert why in capsys.readouterr().err
