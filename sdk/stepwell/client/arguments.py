"""How calls take their arguments: one by position, or several as ``args``."""

from collections.abc import Sequence
from typing import Any, Final


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
