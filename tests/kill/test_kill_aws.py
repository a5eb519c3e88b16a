"""A short kill test of containers on an emulated AWS; ``tests/kill/run.py --aws`` is the long one."""

from pathlib import Path

import pytest

from tests.kill.harness import Plan, run
from tests.support.aws.cells import Cell


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_acknowledged_work_survives_sigkill_of_containers(cell: Cell, tmp_path: Path) -> None:
    plan = Plan(workflows=50, kills=6, concurrent=15, pause=4.0, server_share=0.7, patience=180.0, seed=1)
    report = await run(plan, tmp_path, cell.variables)

    assert not report.problems, str(report)
    assert report.acknowledged >= 50
    assert report.kills["container"] >= 2
