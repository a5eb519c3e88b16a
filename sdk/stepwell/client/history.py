"""A history that was fetched: kept in tests and in CI to be replayed later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..api.codec import decode_json, encode_json
from ..api.events import HistoryEvent, WorkflowExecutionStarted


class _File(msgspec.Struct, kw_only=True):
    workflow_id: str = ""
    events: list[HistoryEvent]


@dataclass(frozen=True)
class WorkflowHistory:
    """All events of one run, in order."""

    workflow_id: str
    events: Sequence[HistoryEvent]

    @property
    def run_id(self) -> str:
        """Raises ``ValueError`` when the history does not begin with ``WorkflowExecutionStarted``."""
        first = self.events[0].attributes if self.events else None
        if not isinstance(first, WorkflowExecutionStarted):
            raise ValueError("a history begins with WorkflowExecutionStarted, this one does not; was it cut?")
        return first.original_execution_run_id

    def to_json(self) -> str:
        """Text that :meth:`from_json` reads; also what ``stepwell workflow show --output json`` prints."""
        return encode_json(_File(workflow_id=self.workflow_id, events=list(self.events))).decode()

    @classmethod
    def from_json(cls, workflow_id: str, history: str | bytes | Mapping[str, Any]) -> "WorkflowHistory":
        """Raises ``ValueError`` (``msgspec.ValidationError``, with the place) when it is not a history."""
        if isinstance(history, Mapping):
            file = msgspec.convert(history, _File)
        else:
            file = decode_json(history.encode() if isinstance(history, str) else history, _File)
        return cls(workflow_id or file.workflow_id, tuple(file.events))
