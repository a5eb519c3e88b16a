"""A short kill test for every run of the tests; ``tests/kill/run.py`` is the long one."""

from pathlib import Path

import pytest

from tests.kill.harness import Plan, run


@pytest.mark.slow
async def test_acknowledged_work_survives_sigkill(tmp_path: Path) -> None:
    report = await run(Plan(workflows=60, kills=12, concurrent=30, pause=2.0, patience=60.0, seed=1), tmp_path)

    assert not report.problems, str(report)
    assert report.acknowledged >= 60
    assert sum(report.kills.values()) == 12
