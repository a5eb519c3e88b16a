"""Who waits for the end of a workflow without being one: a record of the control store, such as a schedule.

It waits under the workflow id of its wake-ups, and is told as a parent is: the run that closes owes the news until they
are taken in (``machines/parent_close``), so they are not lost, and may come twice.
"""

from collections.abc import Awaitable, Callable, Sequence

from stepwell.api.errors import Unavailable

from ..common.control import parse_wake_up, wake_up_id
from .answers import Answer, ChildClosed
from .commit import ExecutionKey
from .state import ParentLink

Told = Callable[[str, str, Sequence[ChildClosed]], Awaitable[None]]
"""By namespace and id of the record. What it raises leaves the news owed."""


def outside_waiter(namespace: str, kind: str, id: str, incarnation: str) -> ParentLink:
    """``incarnation`` tells the record from earlier and later ones of the id."""
    return ParentLink(namespace=namespace, workflow_id=wake_up_id(kind, id), run_id=incarnation, initiated_event_id=0)


class OutsideWaiters:
    """Those of one process, by kind of record."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}

    def register(self, kind: str, told: Told) -> None:
        self._told[kind] = told

    async def tell(self, waiter: ExecutionKey, answers: Sequence[Answer]) -> None:
        """Raises Unavailable, also where this process does not know the kind: another one does."""
        kind, id = parse_wake_up(waiter.workflow_id)
        told = self._told.get(kind)
        if told is None:
            raise Unavailable(f"this process has no news for a {kind}")
        await told(waiter.namespace, id, [answer for answer in answers if isinstance(answer, ChildClosed)])
