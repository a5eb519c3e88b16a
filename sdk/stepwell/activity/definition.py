"""What makes a callable an activity: its registered name, its types and how it has to be run."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ..api.payloads import Payloads
from ..common import RawValue
from ..converter.payload_converter import PayloadConverter
from ..converter.signatures import CallableSignature, signature_of, untyped_signature

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__stepwell_activity__"


@dataclass(frozen=True, slots=True)
class ActivityDefinition:
    """One activity as a worker runs it."""

    name: str
    fn: Callable[..., Any]
    signature: CallableSignature
    is_async: bool
    no_thread_cancel_exception: bool = False
    dynamic: bool = False
    """Takes every type that its worker has no activity for."""

    def arguments(self, converter: PayloadConverter, input: Payloads) -> list[Any]:
        """What its function takes. Raises ``ArgumentError``."""
        if self.dynamic:
            return [[RawValue(payload) for payload in input]]
        return self.signature.decode(converter, input)

    @staticmethod
    def of(activity: Callable[..., Any]) -> "ActivityDefinition | None":
        """Definition of a function, bound method or callable instance marked with :func:`defn`; None for any other.

        Raises ``ValueError`` for one that cannot be called as it stands: a class, or a method without its instance.
        """
        options = _options(activity)
        if options is None:
            return None
        if isinstance(activity, type):
            raise ValueError(f"activity class {activity.__qualname__} must be instantiated before it is registered")
        if _wants_self(activity):
            raise ValueError(
                f"{activity.__qualname__} is a method without its instance; register it as instance.{activity.__name__}"
            )
        is_async = inspect.iscoroutinefunction(_called(activity))
        return ActivityDefinition(
            options.name,
            activity,
            _signature(activity, options.name),
            is_async,
            options.no_thread_cancel,
            options.dynamic,
        )

    @staticmethod
    def must_of(activity: Callable[..., Any]) -> "ActivityDefinition":
        """Raises ``ValueError`` when the callable is not an activity."""
        definition = ActivityDefinition.of(activity)
        if definition is None:
            raise ValueError(f"{_name(activity)} is not an activity; decorate it with @activity.defn")
        return definition


@dataclass(frozen=True, slots=True)
class _Options:
    name: str
    no_thread_cancel: bool
    dynamic: bool = False


@overload
def defn(fn: F, /) -> F: ...
@overload
def defn(
    *, name: str | None = None, no_thread_cancel_exception: bool = False, dynamic: bool = False
) -> Callable[[F], F]: ...
def defn(
    fn: Any = None, /, *, name: str | None = None, no_thread_cancel_exception: bool = False, dynamic: bool = False
) -> Any:
    """Mark a function, a method or a class with ``__call__`` as an activity (AC-01, AC-02).

    ``name`` is the activity type; the own name when not given. ``no_thread_cancel_exception`` keeps cancellation
    from being raised inside a threaded activity, which then has to ask :func:`is_cancelled`. A ``dynamic`` one takes
    every type that its worker has no activity for: its only parameter is ``Sequence[RawValue]``, and
    ``info().activity_type`` has the name. Raises ``ValueError``
    for an empty name, and ``TypeError`` for a required keyword-only parameter.
    """

    if name is not None and not name:
        raise ValueError("activity.defn: name must not be empty; leave it out to use the own name")
    if dynamic and name is not None:
        raise ValueError("activity.defn: a dynamic activity takes every name, so it cannot have one of its own")

    def mark(target: F) -> F:
        own = getattr(target, "__name__", None) or type(target).__name__
        if inspect.isfunction(target) or inspect.isfunction(inspect.getattr_static(target, "__call__", None)):
            signature = _signature(target, name or own)
            if dynamic and (not signature.names or signature.required > 1):
                raise ValueError(f"a dynamic activity takes args: Sequence[RawValue]; {own} does not")
        setattr(target, _MARK, _Options(name or own, no_thread_cancel_exception, dynamic))
        return target

    return mark if fn is None else mark(fn)


def activity_reference(activity: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Type and signature for calling an activity: by name, function, method (bound or of the class), class or instance.

    Raises ``ValueError`` when it is none of these.
    """
    if isinstance(activity, str):
        return activity, untyped_signature(f"activity {activity!r}")
    options = _options(activity)
    if options is None:
        raise ValueError(f"{_name(activity)} is not an activity; decorate it with @activity.defn")
    if options.dynamic:
        raise ValueError(f"{_name(activity)} is a dynamic activity; name the type to call in quotes")
    return options.name, _signature(activity, options.name)


def _options(activity: Callable[..., Any]) -> _Options | None:
    found = getattr(activity, _MARK, None)
    return found if isinstance(found, _Options) else None


def _signature(activity: Callable[..., Any], name: str) -> CallableSignature:
    what = f"activity {name!r}"
    if inspect.isroutine(activity):
        return signature_of(activity, what, method=_wants_self(activity))
    owner = activity if isinstance(activity, type) else type(activity)
    return signature_of(owner.__call__, what, method=True)


def _called(activity: Callable[..., Any]) -> Callable[..., Any]:
    return activity if inspect.isroutine(activity) else type(activity).__call__


def _wants_self(activity: Callable[..., Any]) -> bool:
    """True for a method taken from its class: a plain function whose first parameter is ``self``."""
    if not inspect.isfunction(activity):
        return False
    first = next(iter(inspect.signature(activity).parameters), None)
    return first == "self"


def _name(activity: object) -> str:
    return str(getattr(activity, "__qualname__", repr(activity)))
