"""Programs whose histories Temporal's own server has recorded, run through the gateway by the same SDK."""

import logging

import pytest

from tests.integration.temporal_gateway.conftest import Served
from tests.temporal.oracle import recorded
from tests.temporal.oracle.compare import explained
from tests.temporal.oracle.examining import differences, run_all
from tests.temporal.oracle.explanations import EXPLANATIONS, OPEN


async def test_the_gateway_records_what_temporals_server_did(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "temporalio")
    kept = {seed: recorded.read(seed) for seed in recorded.seeds()}
    ours = await run_all(served.address, {seed: program for seed, (program, _) in kept.items()}, "recorded")

    found = [
        f"seed {seed}: {difference}"
        for seed, (_, theirs) in kept.items()
        for difference in differences(theirs, ours[seed])
        if not explained(difference, {**EXPLANATIONS, **OPEN})
    ]
    assert len(kept) >= 5
    assert found == []
