"""Pages of what a query finds: where one ends and the next begins, and in which order runs stand.

A position says the last run that was looked at, by what orders it; so pages neither repeat nor leave out a run that was
there all the time, whatever is written in between and however many are equal in the attribute that orders them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from stepwell.api.requests import WorkflowExecutionInfo

from .attributes import START_TIME, Attribute, Value
from .filters import Between, Compare, Filter, In, IsNull, Not, Order, Query, StartsWith, both, conjuncts


class Position(NamedTuple):
    start_time: datetime
    run_id: str
    value: Value | None = None
    """Of the attribute that orders; None in the default order, and for runs without it, which come last."""


class Page(NamedTuple):
    executions: list[WorkflowExecutionInfo]
    reached: Position | None
    """Where to go on; None at the end. A store that looks at so much at a time and no more may have found few, or
    none, before it."""


@dataclass(frozen=True, slots=True)
class Group:
    value: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Counted:
    count: int
    groups: tuple[Group, ...] = ()
    reached: Position | None = None
    """As of a page: then ``count`` is what was found so far."""


class TooManyGroups(Exception):
    """The attribute of GROUP BY has more values than an answer may have."""


MAX_GROUPS = 1_000
NEWEST_FIRST = Order(START_TIME, descending=True)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a query's order in which all runs have the attribute that orders, or none has."""

    filter: Filter
    order: Order
    after: Position | None


def phases(query: Query, after: Position | None) -> list[Phase]:
    """What is left behind ``after``: runs with the attribute of ORDER BY, then those without, by start time."""
    order = query.order or NEWEST_FIRST
    if order.attribute == START_TIME:
        return [Phase(query.filter, order, after)]
    lacks = IsNull(order.attribute)
    if _always_has(query.filter, order.attribute):
        return [Phase(query.filter, order, after)]
    without = both(query.filter, lacks)
    last = Order(START_TIME, order.descending)
    if after is not None and after.value is None:
        return [Phase(without, last, after)]
    return [Phase(both(query.filter, Not(lacks)), order, after), Phase(without, last, None)]


def _always_has(filter_: Filter, attribute: Attribute) -> bool:
    """Whether a term that must hold finds only runs that have the attribute."""
    for term in conjuncts(filter_):
        if isinstance(term, Compare | In | Between | StartsWith) and term.attribute == attribute:
            return True
        if isinstance(term, Not) and term.term == IsNull(attribute):
            return True
    return False
