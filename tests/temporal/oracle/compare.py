"""Differences between what two servers made of a program, told so that a person sees what happened."""

import difflib
import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """``where`` is a path such as ``program/run 1/TimerFired 1/timerId``; a value that is not there is ``None``."""

    where: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.where}\n    Temporal: {_shown(self.theirs)}\n    Stepwell: {_shown(self.ours)}"

    @property
    def kind(self) -> str:
        """The same for differences that are likely of one cause."""
        place = self.where.partition("/run ")[2] or self.where
        return re.sub(r"\d+", "#", re.sub(r"^\d+/", "", place))


def _shown(value: Any) -> str:
    return "(nothing)" if value is None else json.dumps(value, sort_keys=True)


def values(where: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    """The smallest parts that differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from values(f"{where}/{key}", theirs.get(key), ours.get(key))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from values(f"{where}/{index}", one, other)
    elif theirs != ours:
        yield Difference(where, theirs, ours)


def histories(where: str, theirs: Sequence[Event], ours: Sequence[Event]) -> Iterator[Difference]:
    """Events are laid beside each other by their types; those that only one side has are a difference each run of them,
    and the attributes of the others are compared."""
    their_types, our_types = ([event["type"] for event in events] for events in (theirs, ours))
    names = _numbered(their_types)
    matcher = difflib.SequenceMatcher(a=their_types, b=our_types, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for offset in range(b - a):
                yield from values(f"{where}/{names[a + offset]}", _rest(theirs[a + offset]), _rest(ours[c + offset]))
        else:
            behind = f"behind {names[a - 1]}" if a else "at the beginning"
            yield Difference(f"{where}/events {behind}", their_types[a:b] or None, our_types[c:d] or None)


def _rest(event: Event) -> Event:
    """Attributes stand beside what any event can have, so that paths are short."""
    return {**event.get("attributes", {}), **{key: event[key] for key in event if key not in ("type", "attributes")}}


def _numbered(types: Sequence[str]) -> list[str]:
    counts: dict[str, int] = {}
    names = []
    for kind in types:
        counts[kind] = counts.get(kind, 0) + 1
        names.append(f"{kind} {counts[kind]}")
    return names


def chains(where: str, theirs: Sequence[Sequence[Event]], ours: Sequence[Sequence[Event]]) -> Iterator[Difference]:
    """The runs of one workflow."""
    if len(theirs) != len(ours):
        yield Difference(f"{where}/runs", len(theirs), len(ours))
    for index, (one, other) in enumerate(zip(theirs, ours, strict=False), 1):
        yield from histories(f"{where}/run {index}", one, other)


def explained(difference: Difference, explanations: Mapping[str, str]) -> str | None:
    """Why it is no fault, when one of the patterns is of its path; a pattern with ``: THEIRS | OURS`` behind it is of
    these values alone."""
    whole = f"{difference.where}: {_shown(difference.theirs)} | {_shown(difference.ours)}"
    for pattern, why in explanations.items():
        if fnmatch.fnmatchcase(whole if " | " in pattern else difference.where, pattern):
            return why
    return None
