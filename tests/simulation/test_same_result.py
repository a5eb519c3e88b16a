"""Programs have the results that they have on an engine without faults."""

from collections import Counter

import pytest

from tests.simulation.acceptance import DECIDED_BY_TIMING
from tests.simulation.ends import End
from tests.simulation.same_result import compare, compare_ends, difference
from tests.simulation.violation import Violation
from tests.simulation.world import with_settings

ACTIVITIES = ("sure", "fatal", "limited", "hang", "silent", "beating", "bounded", "unpolled")
THENS = ("await", "leave", "cancel", "signal", "rash")
OF_PROGRAMS = {
    *(f"act {kind}" for kind in ACTIVITIES),
    *(f"child {then}" for then in THENS),
    *("sleep", "signals", "wait", "seq", "gather", "first", "cancel-after", "chain", "leave", "tell"),
    *("bug", "entropy", "failed"),
}
OF_REPETITIONS = {"flaky", *(f"local {kind}" for kind in ("sure", "fatal", "limited"))}
OF_OTHERS = {"act late", "await", "child attach", "child retry", "session"}
KINDS = OF_PROGRAMS | OF_REPETITIONS | OF_OTHERS
GROUPS: list[tuple[dict[str, int], set[str]]] = [
    ({"": 6, "chains": 6, "others": 12}, OF_PROGRAMS),
    ({"updates": 2, "starts": 2, "repeats": 6, "locals": 6}, OF_REPETITIONS),
    ({"late": 3, "steering": 3, "waits": 9, "sessions": 4}, OF_OTHERS),
    ({"resets": 3, "resets others": 5, "resets chains": 4}, set()),
]
"""By settings, so many seeds that every one of these kinds is met. More: ``python -m tests.simulation --compare --set
others=True``."""
ACT = ["act", {"id": "a1", "kind": "sure"}]
RACE = ["first", [ACT, ["sleep", 1.0]]]


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "kinds"), GROUPS, ids=["programs", "repetitions", "others", "resets"])
def test_results_are_those_of_an_engine_without_faults(settings: dict[str, int], kinds: set[str]) -> None:
    compared: Counter[str] = Counter()
    for names, seeds in settings.items():
        adjust = with_settings([f"{name}=True" for name in names.split()])
        for seed in range(110_000, 110_000 + seeds):
            compare(seed, adjust, compared)
    assert kinds - compared.keys() == set(), "kinds of programs that were not compared"


def test_every_kind_that_timing_decides_is_one_that_there_is() -> None:
    assert DECIDED_BY_TIMING.keys() < KINDS


def test_both_results_of_a_race_must_be_accepted() -> None:
    assert difference(RACE, [0, "done-a1"], [1, "slept"], Counter()) == ""
    assert difference(RACE, [0, "done-a1"], [1, "done-a1"], Counter()) != ""
    assert difference(RACE, [2, "slept"], [1, "slept"], Counter()) != ""


def end(status: str, value: object, *, by_client: bool = False, program: object = ACT) -> End:
    return End("wf-0", program, status, value, timed=False, ended_by_client=by_client)


@pytest.mark.parametrize(
    ("rough", "calm"),
    [
        (end("COMPLETED", "done-a2"), end("COMPLETED", "done-a1")),
        (end("FAILED", "Flaky"), end("COMPLETED", "done-a1")),
        (end("FAILED", "Flaky"), end("FAILED", "Hopeless")),
        (end("", None), end("COMPLETED", "done-a1")),
        (end("COMPLETED", "done-a1"), end("", None)),
        (end("", None), end("", None)),
    ],
)
def test_a_difference_is_found(rough: End, calm: End) -> None:
    with pytest.raises(Violation):
        compare_ends([rough], [calm], Counter())


def test_what_a_client_ended_is_not_compared() -> None:
    compare_ends([end("", None, by_client=True)], [end("COMPLETED", "done-a1")], Counter())
    compare_ends([end("COMPLETED", "done-a1")], [end("", None, by_client=True)], Counter())
