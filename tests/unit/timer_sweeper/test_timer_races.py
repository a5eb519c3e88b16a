"""The races of arming and firing, exhaustively: every interleaving of a writer (which may die before any step), a
sweeper and a clock, for the rules that are in force and for those that look as good and are not.

The rules are the product's own functions; their numbers are the product's, so a change of one that reopens a race
fails here. What counts is one thing: a write that landed and is never fired behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.progress import READ_BACK_MS

KEY = ExecutionKey("default", "order")
BEGIN = 1_000_000_000
AHEAD = 3_000
MOVES = 3
LATE_MS = 5_000
"""The feed fires what landed so long behind its deadline."""


@dataclass(frozen=True)
class Rules:
    commit_first: bool = False
    window_ms: int = READ_BACK_MS
    checks: bool = True
    young_ms: int = buckets.YOUNG_MS
    feed: bool = False
    advances: tuple[int, ...] = (1_000, 4_000, 30_000)
    longest_ms: int = 40_000
    """How long the writer may be held up in all."""
    dies: bool = True


@dataclass(frozen=True)
class State:
    now: int = BEGIN
    step: str = "look"
    drafted: TimerRow | None = None
    rows: frozenset[TimerRow] = frozenset()
    handled: frozenset[TimerRow] = frozenset()
    kept: frozenset[TimerRow] = frozenset()
    cursor: int = BEGIN
    committed: bool = False
    fired: bool = False
    moves: int = 0
    """Of the clock."""


def write(state: State, rules: Rules) -> State:
    now = buckets.from_ms(state.now)
    row = state.drafted
    match state.step:
        case "look":
            fire_at = buckets.from_ms(BEGIN + AHEAD)
            return replace(state, step="put", drafted=buckets.row(KEY, fire_at, now))
        case "put":
            assert row is not None
            if state.committed:
                behind = "landed" if rules.checks and not rules.commit_first else "end"
            else:
                behind = "check" if rules.checks else "commit"
            return replace(state, step=behind, rows=state.rows | {row})
        case "check":
            assert row is not None
            return replace(state, step="look" if buckets.must_arm_again(row, now) else "commit")
        case "commit":
            fired = rules.feed and state.now > BEGIN + AHEAD + LATE_MS
            step = "look" if rules.commit_first else "landed" if rules.checks else "end"
            return replace(state, step=step, committed=True, fired=state.fired or fired)
        case _:
            assert row is not None and state.step == "landed"
            return replace(state, step="look" if buckets.must_arm_again(row, now) else "end")


def tick(state: State, rules: Rules) -> State:
    due = [row for row in state.rows - state.handled if state.cursor - rules.window_ms <= row.place_ms <= state.now]
    fired, handled, kept = state.fired, set(state.handled), set()
    for row in {*due, *state.kept}:
        if state.committed:
            fired = True
            handled.add(row)
        elif state.now - row.armed_ms < rules.young_ms:
            kept.add(row)
        else:
            handled.add(row)
    return replace(state, fired=fired, handled=frozenset(handled), kept=frozenset(kept), cursor=state.now)


def following(state: State, rules: Rules) -> Iterator[State]:
    if state.step == "end":
        return
    yield write(state, rules)
    if rules.dies:
        yield replace(state, step="end")
    yield tick(state, rules)
    for advance in rules.advances:
        if state.now + advance - BEGIN <= rules.longest_ms and state.moves < MOVES:
            yield replace(state, now=state.now + advance, moves=state.moves + 1)


def is_lost(state: State, rules: Rules) -> bool:
    """Whether what is there in the end is never fired, however long the sweeper goes on."""
    for _ in range(20):
        state = tick(replace(state, now=state.now + 10_000), rules)
    return state.committed and not state.fired


def lost(rules: Rules) -> int:
    begin = State(step="commit" if rules.commit_first else "look")
    seen, left, found = {begin}, [begin], 0
    while left:
        state = left.pop()
        if state.step == "end":
            found += is_lost(state, rules)
        for after in following(state, rules):
            if after not in seen:
                seen.add(after)
                left.append(after)
    assert len(seen) > 5
    return found


STANDING = Rules(advances=(), checks=False)


@pytest.mark.parametrize(
    ("race", "rules"),
    [
        ("4a: commit, then arm", replace(STANDING, commit_first=True)),
        ("5a: put behind the cursor", Rules(window_ms=0, checks=False)),
        ("5c: fired before the commit, and dropped", Rules(young_ms=0)),
        ("5d: kept for less than a pause", Rules(young_ms=10_000, checks=False)),
        ("a pause longer than that, then death", Rules(longest_ms=130_000, advances=(4_000, 65_000))),
        (
            "the same, without a second look",
            Rules(longest_ms=130_000, advances=(4_000, 65_000), checks=False, dies=False),
        ),
    ],
)
def test_rules_that_lose_are_found_to_lose(race: str, rules: Rules) -> None:
    assert lost(rules) > 0, race


@pytest.mark.parametrize(
    ("race", "rules"),
    [
        ("4b: arm, then commit", STANDING),
        ("5b, 5e: looked at the clock, kept for longer than any pause", Rules()),
        ("5b: a row that appears within the window", Rules(checks=False, longest_ms=40_000)),
        ("any pause, and the writer lives", Rules(longest_ms=130_000, advances=(4_000, 65_000), dies=False)),
        ("5f: any pause and death, and the feed looks", Rules(longest_ms=130_000, advances=(4_000, 65_000), feed=True)),
    ],
)
def test_the_rules_in_force_lose_nothing(race: str, rules: Rules) -> None:
    assert lost(rules) == 0, race
