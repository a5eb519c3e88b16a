"""The limits of a namespace as options of commands."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from ..api.namespaces import NamespaceLimits

F = TypeVar("F", bound=Callable[..., Any])

_NO_LIMIT = "none"


class _Limit(click.ParamType[float | None]):
    """A number, or ``none`` for what the installation has."""

    name = "number"

    def __init__(self, whole: bool) -> None:
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).lower() == _NO_LIMIT:
            return _NO_LIMIT
        try:
            return int(value) if self._whole else float(value)
        except ValueError:
            kind = "a whole number" if self._whole else "a number"
            self.fail(f"{value!r} is neither {kind} nor {_NO_LIMIT}", param, ctx)


_LIMITS = {
    "requests_per_second": (False, "Calls in a second."),
    "starts_per_second": (False, "Starts in a second."),
    "dispatches_per_second": (False, "Tasks handed to workers in a second."),
    "visibility_per_second": (False, "Lists and counts in a second."),
    "concurrent_long_polls": (True, "Calls held open at once, of each operation."),
    "max_payload_bytes": (True, "Bytes of one input, signal, result, failure, heartbeat and the like."),
    "max_pending_activities": (True, "Activities that one run may have under way."),
    "max_pending_children": (True, "Children that one run may have under way."),
    "max_pending_signals": (True, "Signals of one run to others that are not delivered yet."),
    "max_pending_cancels": (True, "Cancels of one run to others that are not delivered yet."),
}
"""Each is one of ``NamespaceLimits``; whether it is a whole number."""


def limit_options(command: F) -> F:
    for name, (whole, words) in reversed(_LIMITS.items()):
        command = click.option(f"--{name.replace('_', '-')}", name, type=_Limit(whole), help=words)(command)
    return command


def changed(limits: NamespaceLimits, given: dict[str, Any]) -> NamespaceLimits:
    said = {name: None if value == _NO_LIMIT else value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(limits, **said)
