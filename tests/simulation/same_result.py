"""The result of a program equals that of the same program on a fault-free engine.

Only values are compared: which of its clients' signals and updates a run got before its end depends on when they came
(``verdict`` holds those against the histories).
"""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from tests.simulation.acceptance import DECIDED_BY_TIMING, accepts, kind_of
from tests.simulation.ends import End
from tests.simulation.faults import CALM
from tests.simulation.programs import Node
from tests.simulation.violation import Violation
from tests.simulation.world import Outcome, Scenario, draw, settings_of, simulate


def without_faults(scenario: Scenario) -> Scenario:
    return replace(scenario, rates=CALM, drop_first_offers=False, crashes=False, clock_jumps=False)


def compare(seed: int, adjust: Callable[[Scenario], Scenario], compared: Counter[str]) -> Outcome:
    """Simulates the seed with its faults and without. ``compared`` counts the kinds of nodes that had two values."""
    rough = simulate(seed, adjust)
    calm = simulate(seed, lambda scenario: without_faults(adjust(scenario)))
    try:
        if calm.faults:
            raise Violation(f"the engine to compare with was not without faults: {calm.faults}")
        compare_ends(rough.ends, calm.ends, compared)
    except Violation as violation:
        settings = settings_of(draw(seed), adjust(draw(seed)))
        violation.add_note(f"reproduce with: python -m tests.simulation --compare --start {seed} --seeds 1{settings}")
        raise
    return rough


def compare_ends(rough: list[End], calm: list[End], compared: Counter[str]) -> None:
    """Each end with faults against one without, by workflow id and program: that of a shared id is one of several."""
    expected = {_key(end): end for end in reversed(calm)}
    for end in itertools.chain(rough, calm):
        other = expected.get(_key(end))
        if other is None or other is end or end.timed or _ended_early(end, other):
            continue
        problem = ""
        if end.status != other.status:
            problem = f"{end.status} is not {other.status}"
        elif end.status == "FAILED":
            problem = "" if end.value == other.value else f"failed with {end.value}, not with {other.value}"
            compared["failed"] += 1
        elif end.status == "COMPLETED":
            problem = difference(end.program, end.value, other.value, compared)
        else:
            problem = "came to no end of its own"
        if problem:
            raise Violation(
                f"{end.workflow_id}: {problem}; program {end.program!r} gave {end.status} {end.value!r}, "
                f"without faults {other.status} {other.value!r}"
            )


def _key(end: End) -> tuple[str, bytes]:
    return end.workflow_id, msgspec.json.encode(end.program)


def _ended_early(end: End, other: End) -> bool:
    """A client made an end of the program in one of the simulations, so that there is none to compare."""
    return (not end.status and end.ended_by_client) or (not other.status and other.ended_by_client)


def difference(node: Node, value: Any, expected: Any, compared: Counter[str]) -> str:
    """Why one cannot be the result of the program whose result was the other; empty when it can."""
    kind = kind_of(node)
    compared[kind] += 1
    accepted = accepts(node, value) or accepts(node, expected)
    if accepted or kind in DECIDED_BY_TIMING:
        return accepted
    match node:
        case ["seq" | "gather", nodes]:
            return _first_difference(nodes, value, expected, compared)
        case ["chain", segments]:
            return _first_difference([inner for _, inner in segments], value, expected, compared)
        case ["flaky", _, inner]:
            return difference(inner, value, expected, compared)
        case ["child", _, _] if ["taken"] in (value, expected) or ["cut"] in (value, expected):
            return ""  # ``verdict`` says whether it may be
        case ["child", {"then": "await" | "signal"}, inner] if value[:1] != ["failed"]:
            return difference(inner, value, expected, compared)
        case _:
            return "" if value == expected else f"{node!r} gave {value!r}, and {expected!r} without faults"


def _first_difference(nodes: list[Node], values: Any, expected: Any, compared: Counter[str]) -> str:
    problems = [difference(*each, compared) for each in zip(nodes, values, expected, strict=True)]
    return next(filter(None, problems), "")
