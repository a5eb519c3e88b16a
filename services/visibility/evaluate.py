"""What a filter means: whether one run satisfies it. Stores that cannot decide a part of it themselves ask here."""

import operator as compare
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, assert_never

from .attributes import Attribute, Text, Value, Values, ValueType, words
from .filters import All, AnyOf, Between, Compare, Filter, In, IsNull, Not, Operator, StartsWith


def matches(filter_: Filter, values: Values) -> bool:
    """``values`` has what the run has; anything else is NULL."""
    match filter_:
        case All(terms):
            return all(matches(term, values) for term in terms)
        case AnyOf(terms):
            return any(matches(term, values) for term in terms)
        case Not(term):
            return not matches(term, values)
        case IsNull(attribute):
            return _value(attribute, values) is None
        case Compare(attribute, operator, value):
            own = _value(attribute, values)
            return own is not None and _compares(attribute.type, operator, own, value)
        case In(attribute, several):
            own = _value(attribute, values)
            return own is not None and any(_compares(attribute.type, Operator.EQ, own, each) for each in several)
        case Between(attribute, low, high):
            own = _value(attribute, values)
            return (
                own is not None
                and _compares(attribute.type, Operator.GE, own, low)
                and _compares(attribute.type, Operator.LE, own, high)
            )
        case StartsWith(attribute, prefix):
            own = _value(attribute, values)
            return isinstance(own, str) and own.startswith(prefix)
        case _:
            assert_never(filter_)


_CLASSES: dict[ValueType, type] = {
    ValueType.BOOL: bool,
    ValueType.DATETIME: datetime,
    ValueType.DOUBLE: float,
    ValueType.INT: int,
    ValueType.KEYWORD: str,
    ValueType.KEYWORD_LIST: tuple,
    ValueType.TEXT: Text,
}


_ORDERS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQ: compare.eq,
    Operator.LT: compare.lt,
    Operator.LE: compare.le,
    Operator.GT: compare.gt,
    Operator.GE: compare.ge,
}
"""Both sides are of the attribute's type by then."""


def _value(attribute: Attribute, values: Values) -> Value | None:
    """A value of another type than is asked for is none: a run may be older than the attribute's registration."""
    own = values.get(attribute.name)
    if own is None or not isinstance(own, _CLASSES[attribute.type]):
        return None
    stricter = {ValueType.BOOL: False, ValueType.KEYWORD: isinstance(own, Text)}
    return None if stricter.get(attribute.type, isinstance(own, bool)) else own


def _compares(kind: ValueType, operator: Operator, own: Value, value: Value) -> bool:
    if kind is ValueType.KEYWORD_LIST:
        return isinstance(own, tuple) and value in own
    if kind is ValueType.TEXT:
        return isinstance(own, str) and not set(words(own)).isdisjoint(words(str(value)))
    return bool(_ORDERS[operator](own, value))
