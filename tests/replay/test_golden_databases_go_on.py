"""A database that an earlier release left behind: its open run goes on under today's engine and worker, its closed ones
answer.
"""

import shutil
from pathlib import Path

import pytest
from stepwell.client import Client
from stepwell.worker import Worker

from tests.replay import golden_workflows as g

DATABASES = sorted((Path(__file__).parents[1] / "golden" / "databases").glob("*-engine.db"))


def test_there_is_one_of_every_release() -> None:
    assert {path.name.split("-")[0] for path in DATABASES} >= {"0.1.0"}


@pytest.mark.parametrize("golden", DATABASES, ids=lambda path: path.stem)
async def test_open_and_closed_runs(golden: Path, tmp_path: Path) -> None:
    shutil.copy(golden, tmp_path / "golden.db")
    async with (
        await Client.connect(f"sqlite:///{tmp_path}/golden.db") as client,
        Worker(client, task_queue="golden", workflows=g.WORKFLOWS, activities=g.ACTIVITIES),
    ):
        handle = client.get_workflow_handle("open")
        await handle.signal(g.GoldenMessages.add, "the last one")
        assert await handle.result() == ["only one", "the last one", "timed out"]
        assert await client.get_workflow_handle("race").result() == "quick"
        assert len(await client.get_workflow_handle("fan_out").result()) == 8
        await client.start_workflow(g.golden_sequence, 2, id="sequence", task_queue="golden")
        assert await client.get_workflow_handle("sequence").result() == ["step 0", "step 1"]
