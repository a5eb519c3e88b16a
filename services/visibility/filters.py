"""The filter language as data: a closed union of frozen records, typed and checked, and independent of any store.

Two values, true and false: a comparison with what a run does not have is false, and whatever is negated is exactly
the opposite. So ``!=`` finds the runs without the attribute as well.
"""

from dataclasses import dataclass
from enum import StrEnum

from .attributes import Attribute, Value


class Operator(StrEnum):
    EQ = "="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Compare:
    """A KeywordList is equal to each of its texts, a Text to each of its words."""

    attribute: Attribute
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """Equal to one of them."""

    attribute: Attribute
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """Both ends belong to it."""

    attribute: Attribute
    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    attribute: Attribute


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Literally: no character of ``prefix`` means anything but itself."""

    attribute: Attribute
    prefix: str


@dataclass(frozen=True, slots=True)
class Not:
    term: "Filter"


@dataclass(frozen=True, slots=True)
class All:
    """Of no terms: every run."""

    terms: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    terms: tuple["Filter", ...]


Filter = Compare | In | Between | IsNull | StartsWith | Not | All | AnyOf
EVERY_RUN = All()


@dataclass(frozen=True, slots=True)
class Order:
    """By an attribute, then by start time, then by run id, all in the same direction; runs without it come last."""

    attribute: Attribute
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """``order`` None: newest start first, ties by run id."""

    filter: Filter = EVERY_RUN
    order: Order | None = None
    group_by: Attribute | None = None


def both(first: Filter, second: Filter) -> Filter:
    """Their conjunction, kept flat."""
    terms = (*conjuncts(first), *conjuncts(second))
    return terms[0] if len(terms) == 1 else All(terms)


def conjuncts(filter_: Filter) -> tuple[Filter, ...]:
    """Terms that must all hold, as far as they stand at the top."""
    if isinstance(filter_, All):
        return tuple(term for part in filter_.terms for term in conjuncts(part))
    return (filter_,)


def attributes_of(filter_: Filter) -> set[Attribute]:
    """All that it speaks of."""
    if isinstance(filter_, All | AnyOf):
        return {attribute for term in filter_.terms for attribute in attributes_of(term)}
    if isinstance(filter_, Not):
        return attributes_of(filter_.term)
    return {filter_.attribute}
