"""Ids of the real world."""

from uuid import RFC_4122, UUID

import pytest

from stepwell_server.adapters import system


def test_run_ids_are_of_version_7_and_sort_by_time_also_when_the_clock_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    milliseconds = iter([1_700_000_000_001, 1_700_000_000_002, 1_700_000_000_000, 1_700_000_000_003])
    monkeypatch.setattr(system, "time_ns", lambda: next(milliseconds) * 1_000_000)
    ids = system.SystemIds()
    made = [UUID(ids.run_id()) for _ in range(4)]
    assert {(one.version, one.variant) for one in made} == {(7, RFC_4122)}
    assert [(one.int >> 80) - 1_700_000_000_000 for one in made] == [1, 2, 2, 3]
    assert len({one.int & (1 << 80) - 1 for one in made}) == 4
