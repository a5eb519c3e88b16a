"""Finds the route of a raw request path, and refuses a body that names something else than its path.

Works on the path as it came over the wire: ids may hold ``/``, ``?``, ``#``, ``%`` and any other text, percent-encoded
in one segment, so the path must be split before it is decoded.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from stepwell.api.errors import InvalidArgument

from .routes import ROUTES, Handler, Route


@dataclass(frozen=True, slots=True)
class Target:
    """A route, and which segments of its path name what."""

    route: Route
    handler: Handler
    parameters: tuple[tuple[int, str], ...]


class PathIndex:
    """Lookup by the constant segments of a path: a dict access for each pattern of constants (there are few)."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._patterns: dict[int, dict[tuple[int, ...], dict[tuple[str, ...], Target]]] = {}
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        segments = route.operation.path.split("/")
        constant = tuple(i for i, segment in enumerate(segments) if not segment.startswith("{"))
        named = tuple((i, segment[1:-1]) for i, segment in enumerate(segments) if segment.startswith("{"))
        table = self._patterns.setdefault(len(segments), {}).setdefault(constant, {})
        table[tuple(segments[i] for i in constant)] = Target(route, route.handler, named)

    def find(self, raw_path: str) -> tuple[Target, list[str]] | None:
        """The target of a percent-encoded path and the path's segments; None when no route has such a path."""
        segments = raw_path.split("/")
        for constant, table in self._patterns.get(len(segments), {}).items():
            target = table.get(tuple([segments[i] for i in constant]))
            if target is not None:
                return target, segments
        return None


def check_agreement(target: Target, segments: list[str], request: Any) -> None:
    """The body must say what the path says, since access is granted by path."""
    for index, name in target.parameters:
        try:
            in_path = unquote(segments[index], errors="strict") if "%" in segments[index] else segments[index]
        except UnicodeDecodeError:
            raise InvalidArgument(f"{name} in the path is not percent-encoded UTF-8", field=name) from None
        in_body = _in_body(request, name)
        if in_path != in_body:
            raise InvalidArgument(
                f"{name} is {in_path!r} in the path and {in_body!r} in the body; send the same in both", field=name
            )


def _in_body(request: Any, name: str) -> str:
    if name == "workflow_id":
        execution = getattr(request, "execution", None)
        if execution is not None:
            return str(execution.workflow_id)
    return str(getattr(request, name))
