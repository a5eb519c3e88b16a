"""What a callable's annotations say: number and types of its arguments, and the type of its result.

Used on both sides: the caller checks and encodes by them, the receiver decodes by them. Made once per callable.
"""

import functools
import inspect
import logging
import typing
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..api.payloads import Payload, Payloads
from .errors import ArgumentError, PayloadError
from .payload_converter import PayloadConverter

_ORIGINALS = "__stepwell_originals__"
"""Where the guards around workflow code keep the names that they exchanged (``stepwell.replay.guards``)."""

_logger = logging.getLogger(__name__)


class CallableSignature:
    """Positional parameters of a callable, without ``self``. A type is ``Any`` where there is no annotation.

    Annotations are resolved at first use, so that they may name types that are defined further down.
    """

    __slots__ = ("_function", "_hints", "_variadic_name", "names", "required", "what")

    def __init__(
        self,
        what: str,
        names: tuple[str, ...] = (),
        required: int = 0,
        *,
        variadic_name: str | None = None,
        function: Callable[..., Any] | None = None,
        result_type: Any = Any,
    ) -> None:
        self.what = what
        """The callable, for messages, such as ``activity 'charge'``."""
        self.names = names
        self.required = required
        self._variadic_name = variadic_name
        self._function = function
        self._hints: _Hints | None = _Hints((), Any, result_type) if function is None else None

    @property
    def variadic(self) -> bool:
        """True when it takes any number of further arguments."""
        return self._variadic_name is not None

    @property
    def types(self) -> tuple[Any, ...]:
        return (self._hints or self._resolved()).types

    @property
    def variadic_type(self) -> Any:
        return (self._hints or self._resolved()).variadic

    @property
    def result_type(self) -> Any:
        return (self._hints or self._resolved()).result

    def _resolved(self) -> "_Hints":
        if self._hints is None:
            assert self._function is not None
            hints = _type_hints(self._function, self.what)
            self._hints = _Hints(
                tuple(hints.get(name, Any) for name in self.names),
                hints.get(self._variadic_name or "", Any),
                hints.get("return", Any),
            )
        return self._hints

    def with_result_type(self, result_type: Any) -> "CallableSignature":
        """The same, with another type for the result."""
        other = CallableSignature(self.what, self.names, self.required, variadic_name=self._variadic_name)
        mine = self._resolved()
        other._hints = _Hints(mine.types, mine.variadic, result_type)
        return other

    def check_count(self, given: int) -> None:
        """Raises :class:`ArgumentError` when a call with that many arguments cannot succeed."""
        if given < self.required or (given > len(self.names) and not self.variadic):
            raise ArgumentError(f"{self.what} takes {self._expected()}, but {given} {_were(given)} given")

    def _expected(self) -> str:
        most = len(self.names)
        names = f" ({', '.join(self.names)})" if self.names else ""
        if self.variadic:
            return f"at least {self.required} arguments{names}"
        if self.required == most:
            return f"{most} argument{'' if most == 1 else 's'}{names}"
        return f"{self.required} to {most} arguments{names}"

    def _name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else f"*args[{index - len(self.names)}]"

    def _types_of(self, count: int) -> tuple[Any, ...]:
        """Of that many arguments, some of which no parameter names."""
        types = self.types
        return types + (self.variadic_type,) * (count - len(types))

    def encode(self, converter: PayloadConverter, args: Sequence[Any]) -> Payloads:
        """Raises :class:`ArgumentError` naming the argument that is missing, too many, or does not survive encoding."""
        count = len(args)
        if count < self.required or count > len(self.names):
            self.check_count(count)
        types = (self._hints or self._resolved()).types
        if count > len(types):
            types = self._types_of(count)
        encoded: list[Payload] = []
        try:
            for value, hint in zip(args, types, strict=False):
                encoded.append(converter.to_payload(value, hint))
        except PayloadError as error:
            raise ArgumentError(f"{self.what}, argument {self._name(len(encoded))!r}: {error}") from error
        return tuple(encoded)

    def decode(self, converter: PayloadConverter, payloads: Payloads) -> list[Any]:
        """Raises :class:`ArgumentError` naming the argument that does not fit."""
        count = len(payloads)
        if count < self.required or count > len(self.names):
            self.check_count(count)
        types = (self._hints or self._resolved()).types
        if count > len(types):
            types = self._types_of(count)
        decoded: list[Any] = []
        try:
            for payload, hint in zip(payloads, types, strict=False):
                decoded.append(converter.from_payload(payload, hint))
        except PayloadError as error:
            raise ArgumentError(f"{self.what}, argument {self._name(len(decoded))!r}: {error}") from error
        return decoded

    def encode_result(self, converter: PayloadConverter, value: Any) -> Payloads:
        """Raises :class:`PayloadError` when the result does not survive encoding."""
        try:
            return (converter.to_payload(value, (self._hints or self._resolved()).result),)
        except PayloadError as error:
            raise PayloadError(f"result of {self.what}: {error}") from error

    def decode_result(self, converter: PayloadConverter, payloads: Payloads) -> Any:
        """The one value of a result; None when there is no payload. Raises :class:`PayloadError`."""
        if not payloads:
            return None
        try:
            return converter.from_payload(payloads[0], (self._hints or self._resolved()).result)
        except PayloadError as error:
            raise PayloadError(f"result of {self.what}: {error}") from error


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


class _Hints(NamedTuple):
    types: tuple[Any, ...]
    variadic: Any
    result: Any


def untyped_signature(what: str, result_type: Any = Any) -> CallableSignature:
    """For something known only by name: any arguments."""
    return CallableSignature(what, variadic_name="args", result_type=result_type)


@lru_cache(maxsize=4096)
def signature_of(function: Callable[..., Any], what: str, *, method: bool = False) -> CallableSignature:
    """Signature of a function; ``method`` leaves out the first parameter.

    Raises ``TypeError`` for a required keyword-only parameter, since arguments travel by position.
    """
    target = inspect.unwrap(function)
    parameters = list(inspect.signature(target, follow_wrapped=False).parameters.values())
    if method:
        parameters = parameters[1:]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            raise TypeError(
                f"{what} has the required keyword-only parameter {parameter.name!r}; arguments travel by position, "
                "so make it positional or give it a default"
            )
    variadic = next((p for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    return CallableSignature(
        what,
        tuple(p.name for p in positional),
        sum(p.default is p.empty for p in positional),
        variadic_name=variadic.name if variadic else None,
        function=target,
    )


def _type_hints(function: Callable[..., Any], what: str) -> dict[str, Any]:
    """Resolved annotations; of a callable object, those of its ``__call__``. Those that cannot be resolved are left
    out, with a warning.
    """
    target: Any = function
    if not inspect.isroutine(function) and not isinstance(function, functools.partial):
        target = type(function).__call__
    try:
        return typing.get_type_hints(target, localns=getattr(target, "__globals__", {}).get(_ORIGINALS))
    except (NameError, TypeError, AttributeError) as error:
        _logger.warning("%s: annotations are ignored, since they cannot be resolved at run time: %s", what, error)
        return {}
