"""Schedules are counted as runs are: by a query, in all or by value, so many at a time (VI-21)."""

import pytest
from stepwell.api import requests as r
from stepwell.api.errors import InvalidArgument
from stepwell.api.payloads import Payload
from stepwell.api.schedules import ScheduleState

from stepwell_server.scheduler import schedules
from tests.support.scheduled import Scheduled, schedule, scheduled


def team(name: str) -> dict[str, Payload]:
    return {"Team": Payload(metadata={"encoding": "json/plain", "type": "Keyword"}, data=f'"{name}"'.encode())}


async def counted(s: Scheduled, query: str = "") -> tuple[int, dict[str | None, int], int]:
    """The count, the groups, and in how many calls."""
    total, groups, token, calls = 0, dict[str | None, int](), b"", 0
    while True:
        page = await s.call("CountSchedules", r.CountSchedulesRequest(query=query, next_page_token=token))
        total, calls, token = total + page.count, calls + 1, page.next_page_token
        for group in page.groups:
            groups[group.value] = groups.get(group.value, 0) + group.count
        if not token:
            return total, groups, calls


async def test_counted_by_a_query_and_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scheduled() as s:
        assert await counted(s) == (0, {}, 1)
        for number in range(7):
            given = schedule(state=ScheduleState(paused=number < 3))
            await s.create(f"s{number}", schedule=given, search_attributes=team("red") if number % 2 else {})
        assert await counted(s) == (7, {}, 1)
        assert await counted(s, "StepwellSchedulePaused = false AND Team IS NULL") == (2, {}, 1)
        assert await counted(s, "GROUP BY Team") == (7, {"red": 3, None: 4}, 1)
        assert await counted(s, "ScheduleId > 's1' GROUP BY WorkflowType") == (5, {"report": 5}, 1)
        for name, size in (("_READ_FOR_A_COUNT", 3), ("_COUNT_BYTES", 1)):
            with monkeypatch.context() as smaller:
                smaller.setattr(schedules, name, size)
                total, groups, calls = await counted(s, "GROUP BY Team")
                assert (total, groups) == (7, {"red": 3, None: 4}) and calls >= 3
        for wrong in ("Teem = 'red'", "ORDER BY Team", "GROUP BY StepwellSchedulePaused"):
            with pytest.raises(InvalidArgument):
                await counted(s, wrong)
