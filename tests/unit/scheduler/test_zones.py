"""Time zones: where clocks change, and where zones come from."""

import subprocess
import sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from stepwell_server.scheduler.zones import BadZone, change_in, end_of_repetition, instant_of, local, offset, zone
from tests.support.processes import SOURCES

ROME = ZoneInfo("Europe/Rome")  # 2026: forward on 29 March, back on 25 October, each at 1:00 UTC
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
wall = datetime.fromisoformat


def at(month: int, day: int, hour: int, minute: int = 0, second: int = 0) -> int:
    return int(datetime(2026, month, day, hour, minute, second, tzinfo=UTC).timestamp())


def test_the_second_at_which_clocks_change() -> None:
    assert change_in(at(3, 28, 20), at(3, 29, 20), ROME) == at(3, 29, 1)
    assert change_in(at(3, 29, 0, 59, 59), at(3, 29, 1), ROME) == at(3, 29, 1)
    assert (offset(at(3, 29, 0), ROME), offset(at(3, 29, 1), ROME)) == (3_600, 7_200)


@pytest.mark.parametrize(
    ("said", "instant"),
    [
        (wall("2026-03-29 01:59:00"), at(3, 29, 0, 59)),
        (wall("2026-03-29 02:00:00"), at(3, 29, 1)),
        (wall("2026-03-29 02:59:59"), at(3, 29, 1)),
        (wall("2026-03-29 03:00:00"), at(3, 29, 1)),
        (wall("2026-10-25 02:30:00"), at(10, 25, 0, 30)),
        (wall("2026-10-25 02:30:00").replace(fold=1), at(10, 25, 0, 30)),
        (wall("2026-10-25 03:00:00"), at(10, 25, 2)),
    ],
)
def test_what_clocks_say_is_an_instant(said: datetime, instant: int) -> None:
    assert instant_of(said, ROME) == instant


def test_a_repetition_ends() -> None:
    assert end_of_repetition(local(at(10, 25, 1, 15), ROME), ROME) == wall("2026-10-25 03:00:00")
    assert end_of_repetition(local(at(4, 4, 15, 10), LORD_HOWE), LORD_HOWE) == wall("2026-04-05 02:00:00")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Rom", "Europe/Rome"),
        ("Rome", "Europe/Rome"),
        ("America/NewYork", "America/New_York"),
        ("nowhere at all", "use a name such as Europe/Rome, or UTC"),
    ],
)
def test_a_name_that_is_none_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(BadZone, match=near):
        zone(name)


def test_a_system_without_zones_has_those_of_the_package() -> None:
    """Windows, and small containers."""
    code = "from stepwell_server.scheduler.zones import zone, offset; print(offset(0, zone('Asia/Kathmandu')))"
    environment = {"PYTHONTZPATH": "", "PYTHONPATH": SOURCES}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("19800\n", "")
