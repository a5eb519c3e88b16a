"""Ids of the real world."""

from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID

from stepwell_server.adapters.system import SystemClock, SystemIds


class SetBack(SystemClock):
    def __init__(self) -> None:
        self._milliseconds = iter([1, 2, 0, 3])

    def now(self) -> datetime:
        return datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(milliseconds=next(self._milliseconds))


def test_run_ids_are_of_version_7_and_sort_by_time_also_when_the_clock_is_set_back() -> None:
    ids = SystemIds(SetBack())
    made = [UUID(ids.run_id()) for _ in range(4)]
    assert {(one.version, one.variant) for one in made} == {(7, RFC_4122)}
    assert [(one.int >> 80) - 1_700_000_000_000 for one in made] == [1, 2, 2, 3]
    assert len({one.int & (1 << 80) - 1 for one in made}) == 4
