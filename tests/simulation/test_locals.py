"""Programs with local activities while everything goes wrong."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import simulate


@pytest.mark.slow
def test_local_activities_have_one_end() -> None:
    seen: Counter[str] = Counter()
    for seed in range(80_000, 80_000 + FEATURE_BLOCK):
        seen += simulate(seed, lambda scenario: replace(scenario, locals=True)).seen
    assert seen["MarkerRecorded"] > 30
    assert seen["local attempt"] > seen["MarkerRecorded"]
