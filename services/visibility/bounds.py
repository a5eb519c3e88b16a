"""Between which values of an attribute a filter's runs are, so that an index need be walked there alone."""

from typing import Any

from .attributes import Attribute, Value
from .filters import Between, Compare, Filter, In, Operator, StartsWith, conjuncts

_LOWER = (Operator.EQ, Operator.GT, Operator.GE)
_UPPER = (Operator.EQ, Operator.LT, Operator.LE)


def bounds(filter_: Filter, attribute: Attribute) -> tuple[Value | None, Value | None]:
    """Both included; None where there is none. All that the filter finds is within, not all within is found."""
    low: Any = None
    high: Any = None
    for term in conjuncts(filter_):
        first, last = _of_term(term, attribute)
        if first is not None and (low is None or first > low):
            low = first
        if last is not None and (high is None or last < high):
            high = last
    return low, high


def _of_term(term: Filter, attribute: Attribute) -> tuple[Any, Any]:
    match term:
        case Compare(of, operator, value) if of == attribute:
            return value if operator in _LOWER else None, value if operator in _UPPER else None
        case In(of, values) if of == attribute:
            ordered: list[Any] = list(values)
            return min(ordered), max(ordered)
        case Between(of, low, high) if of == attribute:
            return low, high
        case StartsWith(of, prefix) if of == attribute:
            return prefix, None
        case _:
            return None, None
