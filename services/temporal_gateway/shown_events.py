"""Events that a workflow task showed and that have no number in the log yet, for the pages behind its first.

A worker without the run in its cache reads a long history page by page. The log has the numbered events; the last ones
belong to the task, and are kept here, in this process, until the task can no longer be answered. Whoever comes too late
or to another process is told so, drops the task and is offered it again.
"""

from collections import OrderedDict

from stepwell.api.events import HistoryEvent

_MOST = 1_000


class ShownEvents:
    """Least recently kept go first."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, tuple[HistoryEvent, ...]] = OrderedDict()

    def keep(self, task_token: bytes, events: tuple[HistoryEvent, ...]) -> None:
        self._kept[task_token] = events
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def get(self, task_token: bytes) -> tuple[HistoryEvent, ...] | None:
        return self._kept.get(task_token)

    def drop(self, task_token: bytes) -> None:
        self._kept.pop(task_token, None)

    def __len__(self) -> int:
        return len(self._kept)
