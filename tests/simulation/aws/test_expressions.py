"""Expressions of DynamoDB, as far as our adapters use them."""

import pytest

from tests.simulation.aws.expressions import BadExpression, holds, partition_of, projected, updated

ITEM = {"pk": {"S": "a"}, "sk": {"S": "C#000000000010"}, "x": {"N": "9"}, "b": {"B": b"\1"}}
VALUES = {":low": {"N": "1"}, ":ten": {"N": "10"}, ":text": {"S": "9"}, ":c": {"S": "C#"}, ":bytes": {"B": b"\1"}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("attribute_not_exists(pk)", False),
        ("attribute_exists(pk) AND x > :low", True),
        ("attribute_exists(pk) AND x > :ten", False),  # 9 and 10 as numbers, not as text
        ("attribute_not_exists(pk) OR x <= :ten", True),
        ("x = :text", False),  # of another type
        ("y <= :ten", False),  # what is not there compares with nothing
        ("b = :bytes", True),
        ("begins_with(sk, :c) AND (attribute_exists(y) OR attribute_exists(x))", True),
        ("sk BETWEEN :c AND :text", False),
        ("x BETWEEN :low AND :ten AND #p = :c", False),
    ],
)
def test_what_holds_for_an_item(expression: str, expected: bool) -> None:
    assert holds(expression, ITEM, {"#p": "pk"}, VALUES) is expected


def test_without_an_item_only_absence_holds() -> None:
    assert holds("attribute_not_exists(pk)", None, {}, {})
    assert not holds("attribute_exists(pk)", None, {}, {})
    assert not holds("x = :low", None, {}, VALUES)


@pytest.mark.parametrize("expression", ["size(pk) > :low", "x + :low", "x >", "x = :other", "(x = :low", "x LIKE :low"])
def test_what_is_not_known_is_refused(expression: str) -> None:
    with pytest.raises(BadExpression):
        holds(expression, ITEM, {}, VALUES)


def test_updates_and_projections() -> None:
    assert updated("SET x = :ten, #n = :c", ITEM, {"#n": "n"}, VALUES) == {**ITEM, "x": {"N": "10"}, "n": {"S": "C#"}}
    assert updated("REMOVE x", ITEM, {}, {}) == {name: typed for name, typed in ITEM.items() if name != "x"}
    assert projected("pk, #x, y", ITEM, {"#x": "x"}) == {"pk": {"S": "a"}, "x": {"N": "9"}}
    assert partition_of("pk = :c AND sk > :text", {}, VALUES) == ("pk", "C#")
    with pytest.raises(BadExpression):
        updated("ADD x :low", ITEM, {}, VALUES)
