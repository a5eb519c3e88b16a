"""Filters as data."""

from stepwell_server.visibility.attributes import START_TIME, STATUS, WORKFLOW_ID, WORKFLOW_TYPE
from stepwell_server.visibility.filters import (
    EVERY_RUN,
    All,
    AnyOf,
    Compare,
    In,
    IsNull,
    Not,
    Operator,
    attributes_of,
    both,
    conjuncts,
)

A, B = Compare(STATUS, Operator.EQ, "RUNNING"), In(WORKFLOW_TYPE, ("a", "b"))
C = AnyOf((IsNull(WORKFLOW_ID), Not(Compare(START_TIME, Operator.LT, "x"))))


def test_a_conjunction_is_flat() -> None:
    assert both(EVERY_RUN, A) == A
    assert both(EVERY_RUN, EVERY_RUN) == EVERY_RUN
    assert both(A, All((B, All((C,))))) == All((A, B, C))
    assert conjuncts(C) == (C,)


def test_what_a_filter_speaks_of() -> None:
    assert attributes_of(both(A, C)) == {STATUS, WORKFLOW_ID, START_TIME}
    assert attributes_of(EVERY_RUN) == set()
