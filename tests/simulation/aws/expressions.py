"""DynamoDB's expressions, as far as our adapters use them: conditions, filters, key conditions, updates, projections.

What an expression holds that is not known here is refused, as is a value that is not used: the service does so too.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

Typed = Mapping[str, Any]
Attributes = Mapping[str, Typed]
Names = Mapping[str, str]
Test = Callable[[Attributes, Names, Attributes], bool]
_Operand = Callable[[Attributes, Names, Attributes], Typed | None]

_TOKEN = re.compile(r"\s*(<=|>=|<>|[=<>(),]|[#:][A-Za-z_0-9]+|[A-Za-z_][A-Za-z_0-9]*)")
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    "<>": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


class BadExpression(ValueError):
    """DynamoDB would answer with a ValidationException."""


def holds(expression: str, item: Attributes | None, names: Names, values: Attributes) -> bool:
    """Whether the condition holds for the item; None: there is none."""
    return _condition(expression)(item or {}, names, values)


def updated(expression: str, item: Attributes, names: Names, values: Attributes) -> dict[str, Typed]:
    """The item after ``SET a = :a, …`` or ``REMOVE a, …``."""
    verb, _, rest = expression.partition(" ")
    after = dict(item)
    for part in rest.split(","):
        if verb == "REMOVE":
            after.pop(_name(part.strip(), names), None)
        elif verb == "SET":
            left, _, right = (piece.strip() for piece in part.partition("="))
            if right not in values:
                raise BadExpression(f"{right!r} of {expression!r} is no value")
            after[_name(left, names)] = values[right]
        else:
            raise BadExpression(f"{verb!r} is not known here")
    return after


def projected(expression: str, item: Attributes, names: Names) -> dict[str, Typed]:
    wanted = [_name(part.strip(), names) for part in expression.split(",")]
    return {name: item[name] for name in wanted if name in item}


def partition_of(expression: str, names: Names, values: Attributes) -> tuple[str, str]:
    """The attribute that a key condition begins with, and its value: always an equality of text."""
    found = re.match(r"\s*([#A-Za-z_0-9]+)\s*=\s*(:[A-Za-z_0-9]+)", expression)
    if found is None:
        raise BadExpression(f"{expression!r} names no partition")
    text: str = values[found[2]]["S"]
    return _name(found[1], names), text


def _name(token: str, names: Names) -> str:
    if token.startswith("#"):
        return names[token]
    if token.startswith(":") or not token:
        raise BadExpression(f"{token!r} is no attribute")
    return token


@lru_cache(maxsize=256)
def _condition(expression: str) -> Test:
    parser = _Parser(expression)
    test = parser.any_of()
    parser.end()
    return test


class _Parser:
    def __init__(self, expression: str) -> None:
        self._text = expression
        self._tokens = _TOKEN.findall(expression)
        if "".join(self._tokens) != re.sub(r"\s", "", expression):
            raise BadExpression(f"{expression!r} is not known here")
        self._at = 0

    def end(self) -> None:
        if self._at != len(self._tokens):
            raise BadExpression(f"{self._tokens[self._at]!r} in {self._text!r} is not known here")

    def any_of(self) -> Test:
        tests = [self._all_of()]
        while self._takes("OR"):
            tests.append(self._all_of())
        return tests[0] if len(tests) == 1 else lambda *of: any(test(*of) for test in tests)

    def _all_of(self) -> Test:
        tests = [self._one()]
        while self._takes("AND"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda *of: all(test(*of) for test in tests)

    def _one(self) -> Test:
        if self._takes("("):
            test = self.any_of()
            self._demand(")")
            return test
        token = self._next()
        if self._takes("("):
            return self._function(token)
        return self._comparison(_operand(token))

    def _function(self, function: str) -> Test:
        attribute = _operand(self._next())
        if function in ("attribute_exists", "attribute_not_exists"):
            self._demand(")")
            wanted = function == "attribute_exists"
            return lambda *of: (attribute(*of) is not None) is wanted
        if function == "begins_with":
            self._demand(",")
            beginning = _operand(self._next())
            self._demand(")")
            return lambda *of: _text(attribute(*of)).startswith(_text(beginning(*of)))
        raise BadExpression(f"{function!r} is not known here")

    def _comparison(self, left: _Operand) -> Test:
        operator = self._next()
        if operator == "BETWEEN":
            first = _operand(self._next())
            self._demand("AND")
            last = _operand(self._next())
            return lambda *of: _compare(">=", left(*of), first(*of)) and _compare("<=", left(*of), last(*of))
        if operator not in _ORDER:
            raise BadExpression(f"{operator!r} in {self._text!r} is not known here")
        right = _operand(self._next())
        return lambda *of: _compare(operator, left(*of), right(*of))

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise BadExpression(f"{self._text!r} ends too soon")
        self._at += 1
        token: str = self._tokens[self._at - 1]
        return token

    def _takes(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _demand(self, token: str) -> None:
        if not self._takes(token):
            raise BadExpression(f"{self._text!r} needs a {token!r}")


def _operand(token: str) -> _Operand:
    if token.startswith(":"):

        def value(item: Attributes, names: Names, values: Attributes) -> Typed:
            if token not in values:
                raise BadExpression(f"value {token} is not given")
            return values[token]

        return value
    return lambda item, names, values: item.get(_name(token, names))


def _compare(operator: str, left: Typed | None, right: Typed | None) -> bool:
    """What is missing, or of another type, compares with nothing."""
    if left is None or right is None or left.keys() != right.keys():
        return operator == "<>"
    ((kind, one),), ((_, other),) = left.items(), right.items()
    if kind == "N":
        return _ORDER[operator](Decimal(one), Decimal(other))
    if kind == "S":
        return _ORDER[operator](one.encode(), other.encode())
    return _ORDER[operator](one, other)


def _text(typed: Typed | None) -> str:
    return "\0" if typed is None else str(typed.get("S", "\0"))
