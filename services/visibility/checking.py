"""From the tree of a query to typed data: each attribute is one that there is, each operator one that its type has."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from lark import Token, Tree
from stepwell.api.errors import InvalidArgument

from .attributes import DURATION, STATUS, SYSTEM, Attribute, Value, ValueType, has_order
from .filters import (
    EVERY_RUN,
    All,
    AnyOf,
    Between,
    Compare,
    Filter,
    In,
    IsNull,
    Not,
    Operator,
    Order,
    Query,
    StartsWith,
)
from .grammar import position, refuse, tree_of
from .literals import unquoted, value_of

MAX_DEPTH = 32
MAX_PREDICATES = 200
MAX_IN_VALUES = 500
"""Brackets and NOTs within each other, comparisons of a query, and values of one IN."""

_GROUPED = frozenset({ValueType.KEYWORD})
_LEAST_PART = 4
_NEGATIONS = {"not_in_values": "in_values", "not_between": "between", "not_starts_with": "starts_with"}


def checked(
    text: str,
    attributes: Mapping[str, ValueType],
    ordered_by: frozenset[str],
    *,
    counts: bool,
    own: Mapping[str, Attribute] = SYSTEM,
) -> Query:
    """See ``query.parse``. ``own``: the system's attributes, by the names that the query may use."""
    return _Reading(attributes, ordered_by, own).query(tree_of(text), counts)


class _Reading:
    """Of one query."""

    def __init__(
        self, attributes: Mapping[str, ValueType], ordered_by: frozenset[str], own: Mapping[str, Attribute]
    ) -> None:
        self._attributes = attributes
        self._own = own
        self._ordered_by = ordered_by
        self._predicates = 0

    def query(self, tree: Tree[Token], counts: bool) -> Query:
        filter_: Filter = EVERY_RUN
        order: Order | None = None
        group_by: Attribute | None = None
        for part in tree.children:
            assert isinstance(part, Tree)
            if part.data == "limit":
                raise refuse(
                    position(_first(part)),
                    "LIMIT is not taken: a page has as many runs as page_size says, and next_page_token leads to the "
                    "next; leave it out",
                )
            if part.data == "order":
                order = self._order(part, counts)
            elif part.data == "group":
                group_by = self._group(part, counts)
            else:
                filter_ = self._filter(part, 1)
        return Query(filter_, order, group_by)

    def _filter(self, tree: Tree[Token], depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise refuse(
                position(_first(tree)),
                f"brackets and NOTs are more than {MAX_DEPTH} within each other; say it with fewer",
            )
        match tree.data:
            case "any_of" | "all_of":
                terms = tuple(self._filter(part, depth) for part in _parts(tree))
                if len(terms) == 1:
                    return terms[0]
                return AnyOf(terms) if tree.data == "any_of" else All(terms)
            case "negated":
                return Not(self._filter(_parts(tree)[0], depth + 1))
            case "brackets":
                return self._filter(_parts(tree)[0], depth + 1)
            case _:
                return self._predicate(tree)

    def _predicate(self, tree: Tree[Token]) -> Filter:
        self._predicates += 1
        name, *rest = _tokens(tree)
        if self._predicates > MAX_PREDICATES:
            raise refuse(
                position(name), f"the query has more than {MAX_PREDICATES} comparisons; an IN has room for many values"
            )
        attribute = self._attribute(name)
        kind = str(tree.data)
        if kind == "compare":
            return self._comparison(attribute, name, rest)
        if kind == "is_null":
            return IsNull(attribute)
        if kind == "is_not_null":
            return Not(IsNull(attribute))
        plain = self._plain(_NEGATIONS.get(kind, kind), attribute, name, rest)
        return Not(plain) if kind in _NEGATIONS else plain

    def _comparison(self, attribute: Attribute, name: Token, rest: list[Token]) -> Filter:
        operator, token = rest
        negated = operator in ("!=", "<>")
        asked = Operator.EQ if negated else Operator(operator)
        if asked is not Operator.EQ and not _ranged(attribute):
            raise self._misused(attribute, name, str(operator))
        equal = Compare(attribute, asked, value_of(attribute, token))
        return Not(equal) if negated else equal

    def _plain(self, kind: str, attribute: Attribute, name: Token, tokens: list[Token]) -> Filter:
        if kind == "in_values":
            if attribute.type is ValueType.TEXT:
                raise self._misused(attribute, name, "IN")
            if len(tokens) > MAX_IN_VALUES:
                raise refuse(
                    position(name), f"IN has {len(tokens)} values; at most {MAX_IN_VALUES} are taken, ask in parts"
                )
            values: dict[Value, None] = dict.fromkeys(value_of(attribute, token) for token in tokens)
            return In(attribute, tuple(values))
        if kind == "between":
            if not _ranged(attribute):
                raise self._misused(attribute, name, "BETWEEN")
            low, high = (value_of(attribute, token) for token in tokens)
            return Between(attribute, low, high)
        if attribute.type is not ValueType.KEYWORD or attribute == STATUS:
            raise self._misused(attribute, name, "STARTS_WITH")
        return StartsWith(attribute, str(value_of(attribute, tokens[0])))

    def _misused(self, attribute: Attribute, name: Token, operator: str) -> InvalidArgument:
        taken = "=, !=, IN, IS NULL"
        if attribute.type is ValueType.TEXT:
            taken = "= and != (a word of it), IS NULL"
        elif _ranged(attribute):
            taken = "=, !=, <, >, <=, >=, IN, BETWEEN, IS NULL"
        return refuse(
            position(name), f"{attribute.name} is of type {attribute.type}, which has no {operator}; it has {taken}"
        )

    def _attribute(self, token: Token) -> Attribute:
        name = unquoted(token) if token.type == "QUOTED_NAME" else str(token)
        if (own := self._own.get(name)) is not None:
            return own
        if (kind := self._attributes.get(name)) is not None:
            return Attribute(name, kind)
        near = _nearest(name, [*self._own, *self._attributes])
        raise refuse(
            position(token),
            f"there is no search attribute {name[:80]!r} in this namespace; "
            + (f"near it: {near}" if near else f"there are {', '.join(sorted([*self._own, *self._attributes])[:40])}"),
        )

    def _order(self, tree: Tree[Token], counts: bool) -> Order:
        keys = _parts(tree)
        name, *direction = _tokens(keys[0])
        if counts:
            raise refuse(position(name), "a count has no order; leave ORDER BY out")
        if len(keys) > 1:
            raise refuse(
                position(_first(keys[1])), "ORDER BY takes one attribute; equal ones go by StartTime, then by RunId"
            )
        attribute = self._attribute(name)
        if not attribute.custom and attribute.name not in self._ordered_by:
            raise refuse(
                position(name),
                f"no index here is in the order of {attribute.name}; order by {', '.join(sorted(self._ordered_by))} or "
                "an attribute of your own",
            )
        if not has_order(attribute.type) and attribute.type is not ValueType.BOOL:
            raise refuse(
                position(name), f"values of type {attribute.type} have no order; order by another attribute than {name}"
            )
        return Order(attribute, bool(direction) and direction[0].type == "DESC")

    def _group(self, tree: Tree[Token], counts: bool) -> Attribute:
        names = _tokens(tree)
        if not counts:
            raise refuse(position(names[0]), "GROUP BY is for counts; leave it out of a list")
        if len(names) > 1:
            raise refuse(position(names[1]), "GROUP BY takes one attribute; count once for each")
        attribute = self._attribute(names[0])
        if attribute.type not in _GROUPED:
            raise refuse(
                position(names[0]),
                f"groups are by attributes of type Keyword, and {attribute.name} is of type {attribute.type}",
            )
        return attribute


def _ranged(attribute: Attribute) -> bool:
    return attribute == DURATION or (has_order(attribute.type) and attribute != STATUS)


def _nearest(name: str, known: Sequence[str]) -> str:
    """Those that it is a part of, such as ``Status``, and those that look like it."""
    by_fold = {each.casefold(): each for each in known}
    fold = name.casefold()
    near = [each for each in sorted(by_fold) if len(fold) >= _LEAST_PART and fold in each][:3]
    near += [each for each in difflib.get_close_matches(fold, by_fold, n=3, cutoff=0.6) if each not in near]
    return ", ".join(by_fold[each] for each in near)


def _parts(tree: Tree[Token]) -> list[Tree[Token]]:
    return [part for part in tree.children if isinstance(part, Tree)]


def _tokens(tree: Tree[Token]) -> list[Token]:
    return [part for part in tree.children if isinstance(part, Token)]


def _first(tree: Any) -> Token:
    """The token that a tree begins with, of those that are kept."""
    while isinstance(tree, Tree):
        tree = tree.children[0]
    assert isinstance(tree, Token)
    return tree
