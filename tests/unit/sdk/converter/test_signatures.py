"""Calls are checked against annotations; messages name callable and argument."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from stepwell.converter import ArgumentError, PayloadConverter
from stepwell.converter.signatures import signature_of, untyped_signature

if TYPE_CHECKING:
    from decimal import Decimal

CONVERTER = PayloadConverter.default


def plain(a: int, b: "Later", c: str = "x") -> "Later":
    return b


def variadic(first: int, *rest: str) -> None: ...


class Later(str):
    pass


class Owner:
    def method(self, a: int) -> bool:
        return True


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (variadic, [], r"activity 'x' takes at least 1 arguments \(first\), but 0 were given"),
        (variadic, [1, 2], r"activity 'x', argument '\*args\[0\]': a value of type int does not fit str"),
        (lambda a, b=1: a, [1, 2, 3], r"takes 1 to 2 arguments \(a, b\), but 3 were given"),
        (lambda: 1, [1], "takes 0 arguments, but 1 was given"),
    ],
)
def test_messages(function: Callable[..., Any], args: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        signature_of(function, "activity 'x'").encode(CONVERTER, args)


def test_methods_and_results() -> None:
    signature = signature_of(Owner.method, "activity 'method'", method=True)
    assert (signature.names, signature.types, signature.result_type) == (("a",), (int,), bool)
    assert signature_of(Owner().method, "activity 'method'").names == ("a",)
    assert signature.with_result_type(int).result_type is int


def test_names_that_are_defined_later_are_found_at_first_use() -> None:
    signature = signature_of(plain, "activity 'plain'")
    assert signature.types == (int, Later, str)
    assert signature.required == 2


def test_annotations_that_cannot_be_resolved_are_told_about(caplog: pytest.LogCaptureFixture) -> None:
    def unresolvable(amount: "Decimal") -> None: ...

    signature = signature_of(unresolvable, "activity 'unresolvable'")
    assert signature.types == (Any,)
    assert "annotations are ignored" in caplog.text


def test_wrapped_functions_and_keyword_only_parameters() -> None:
    @functools.wraps(plain)
    def wrapper(*args: Any, **kwargs: Any) -> Any: ...

    assert signature_of(wrapper, "w").names == ("a", "b", "c")

    def keyword_only(*, needed: int) -> None: ...

    with pytest.raises(TypeError, match="required keyword-only parameter 'needed'"):
        signature_of(keyword_only, "activity 'k'")


def test_by_name_anything_goes() -> None:
    signature = untyped_signature("activity 'x'", int)
    assert len(signature.encode(CONVERTER, [1, "a", None])) == 3
    assert signature.decode_result(CONVERTER, ()) is None
