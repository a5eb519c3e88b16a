"""What an index need not be walked for."""

from stepwell_server.visibility.attributes import Attribute, ValueType
from stepwell_server.visibility.bounds import bounds
from stepwell_server.visibility.filters import Order, Query
from stepwell_server.visibility.pages import phases
from stepwell_server.visibility.query import parse

TYPES = {"Amount": ValueType.INT, "City": ValueType.KEYWORD}
AMOUNT, CITY = (Attribute(name, kind) for name, kind in TYPES.items())


def test_bounds() -> None:
    for text, expected in {
        "": (None, None),
        "Amount > 3": (3, None),
        "Amount > 3 AND Amount <= 7 AND Amount < 9": (3, 7),
        "Amount = 5": (5, 5),
        "Amount IN (7, 2, 3) AND Amount BETWEEN 3 AND 10": (3, 7),
        "Amount > 3 OR Amount < 1": (None, None),
        "NOT Amount > 3": (None, None),
        "City = 'a'": (None, None),
    }.items():
        assert bounds(parse(text, TYPES).filter, AMOUNT) == expected
    assert bounds(parse("City STARTS_WITH 'a'", TYPES).filter, CITY) == ("a", None)


def test_runs_without_the_attribute_are_asked_for_only_where_there_may_be_some() -> None:
    for text, number in {"": 2, "City = 'a'": 2, "Amount > 3": 1, "Amount IS NOT NULL": 1, "Amount IS NULL": 2}.items():
        assert len(phases(Query(parse(text, TYPES).filter, Order(AMOUNT)), None)) == number
