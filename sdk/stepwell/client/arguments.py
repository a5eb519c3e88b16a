"""How calls take their arguments: one by position, or several as ``args``; and what no request would refuse."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ..common import CompletionCallback, Deduplication, Priority

if TYPE_CHECKING:
    from .interceptors import StartWorkflowInput


class _Unset:
    def __repr__(self) -> str:
        return "…"


UNSET: Final = _Unset()


def arguments(arg: Any, args: Sequence[Any], more: tuple[Any, ...] = ()) -> Sequence[Any]:
    """Raises ``TypeError`` when both are given, ``args`` is a lone string, or there is ``more`` by position."""
    if more:
        raise TypeError(f"one argument goes by position, several as args=[…]; {len(more) + 1} were given by position")
    if isinstance(args, str | bytes):
        raise TypeError(f"args is a list of arguments, not {type(args).__name__}; put the value into a list")
    if arg is UNSET:
        return args
    if args:
        raise TypeError("give either one argument by position or several as args=[…], not both")
    return (arg,)


def check_start(input: "StartWorkflowInput") -> None:
    """Raises ``TypeError`` for a value of another type that the request would not show, ``ValueError`` for arguments
    of no signal.
    """
    priority: object = input.priority
    eager: object = input.request_eager_start
    if not isinstance(priority, Priority):
        raise TypeError(f"priority must be a Priority, not {type(priority).__name__}")
    if not isinstance(eager, bool):
        raise TypeError(f"request_eager_start must be True or False, not {eager!r}")
    deduplication: object = input.deduplication
    if not isinstance(deduplication, Deduplication | None):
        raise TypeError(f"deduplication must be a Deduplication, not {type(deduplication).__name__}")
    for callback in input.callbacks:
        given: object = callback
        if not isinstance(given, CompletionCallback):
            raise TypeError(f"callbacks holds {type(given).__name__}; give CompletionCallback(url)")
    if input.start_signal is None and input.start_signal_args:
        raise ValueError("start_signal_args are given without a start_signal; name the signal, or leave them out")
