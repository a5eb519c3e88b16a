"""Handlers of updates: the decorator, and what is set and asked while the workflow runs (MS-25, MS-26)."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from ..replay.runtime import current_runtime
from ..replay.updates import UpdateInfo as UpdateInfo
from ..replay.updates import update_at_hand
from .decorators import name_and_signature
from .definition import UPDATE_MARK, HandlerUnfinishedPolicy, UpdateDefinition, is_async
from .dynamic import DYNAMIC

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class UpdateMethodMultiParam(Protocol[P, R_co]):
    """A method that ``@workflow.update`` has marked."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...

    def validator(self, vfunc: Callable[P, None], /) -> Callable[P, None]:
        """Mark the method that decides whether the update is taken: a ``def`` with the same parameters, which raises
        to reject. It only reads, and a rejected update leaves nothing in the history.
        """


@overload
def update(fn: Callable[P, Awaitable[R]], /) -> UpdateMethodMultiParam[P, R]: ...
@overload
def update(fn: Callable[P, R], /) -> UpdateMethodMultiParam[P, R]: ...
@overload
def update(
    *,
    name: str | None = None,
    dynamic: bool = False,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Callable[[Callable[P, Any]], UpdateMethodMultiParam[P, Any]]: ...
def update(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    dynamic: bool = False,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Any:
    """Mark a method, ``def`` or ``async def``, that handles the update of its name: what it returns or raises is the
    update's outcome. ``@<method>.validator`` marks the method that may reject an update before it is taken.

    A ``dynamic`` one takes all updates without a handler: their name, and their arguments as ``Sequence[RawValue]``.
    """

    def decorate(decorated: Any) -> Any:
        own_name, signature = name_and_signature("update", name, decorated, dynamic)
        definition = UpdateDefinition(
            own_name,
            decorated,
            signature,
            is_async(decorated),
            unfinished_policy=unfinished_policy,
            description=description or "",
            dynamic=dynamic,
        )
        setattr(decorated, UPDATE_MARK, definition)

        def validator(vfunc: Callable[..., None]) -> Callable[..., None]:
            _check_validator(decorated, vfunc)
            setattr(decorated, UPDATE_MARK, replace(getattr(decorated, UPDATE_MARK), validator=vfunc))
            return vfunc

        decorated.validator = validator
        return decorated

    return decorate if fn is None else decorate(fn)


def _check_validator(handler: Callable[..., Any], validator: Callable[..., Any]) -> None:
    if is_async(validator):
        raise ValueError(f"validator {validator.__qualname__} must be 'def', since it cannot wait")
    counts = [len(inspect.signature(fn).parameters) for fn in (handler, validator)]
    if counts[0] != counts[1]:
        raise ValueError(
            f"validator {validator.__qualname__} takes {counts[1]} parameters, and {handler.__qualname__} {counts[0]}; "
            "give it the same ones"
        )


def current_update_info() -> UpdateInfo | None:
    """Of the update whose handler or validator is running; None elsewhere."""
    current_runtime()
    return update_at_hand.get()


def set_update_handler(
    name: str, handler: Callable[..., Any] | None, *, validator: Callable[..., None] | None = None
) -> None:
    """Set the handler of an update, and its validator, or with None take them away. An update that came with this
    workflow task and has no handler yet is handed over at once; one that nobody has taken at the task's end is
    rejected.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("setting a handler")
    if handler is not None and validator is not None:
        _check_validator(handler, validator)
    runtime.updates.set_handler(name, handler, validator)


def get_update_handler(name: str) -> Callable[..., Any] | None:
    """The handler of an update, bound to the workflow instance; None when there is none."""
    runtime = current_runtime()
    found = runtime.updates.handlers.get(name)
    if found is None:
        return None
    return found.fn if found.bound else found.fn.__get__(runtime.handlers.instance)


def set_dynamic_update_handler(
    handler: Callable[..., Any] | None, *, validator: Callable[..., None] | None = None
) -> None:
    """As :func:`set_update_handler`, for all updates that have no handler of their own. It takes the name and the
    arguments as ``Sequence[RawValue]``.
    """
    set_update_handler(DYNAMIC, handler, validator=validator)


def get_dynamic_update_handler() -> Callable[..., Any] | None:
    """The handler of all updates that have none of their own; None when there is none."""
    return get_update_handler(DYNAMIC)
