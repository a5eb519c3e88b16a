"""A row of the table of events."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """``may_ignore``: a worker that does not know the event may go on without it."""

    event_type: Any
    field: str
    attributes: Callable[[Any], Any]
    may_ignore: bool = False
