"""A stored history, as JSON keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..api.codec import decode_json, encode_json
from ..api.events import HistoryEvent, WorkflowExecutionStarted


@dataclass(frozen=True)
class WorkflowHistory:
    """Events of one run, from 1 on."""

    workflow_id: str
    events: Sequence[HistoryEvent]
    run_id: str = ""

    @classmethod
    def from_json(cls, history: str | bytes, workflow_id: str = "") -> "WorkflowHistory":
        """From ``{"events": […]}`` or a plain list of events; the workflow id is taken from the history when not given.

        Raises ``ValueError`` naming the place that is not a history.
        """
        data = history.encode() if isinstance(history, str) else history
        try:
            if data.lstrip().startswith(b"["):
                stored = _Stored(events=decode_json(data, list[HistoryEvent]))
            else:
                stored = decode_json(data, _Stored)
        except msgspec.DecodeError as error:
            raise ValueError(f"not a stored history: {error}") from error
        first = stored.events[0].attributes if stored.events else None
        if not isinstance(first, WorkflowExecutionStarted):
            raise ValueError("not a stored history: the first event is not WorkflowExecutionStarted")
        return cls(
            workflow_id or stored.workflow_id or first.workflow_id,
            stored.events,
            stored.run_id or first.original_execution_run_id,
        )

    def to_json(self) -> bytes:
        """The form that :meth:`from_json` reads."""
        return encode_json(_Stored(workflow_id=self.workflow_id, run_id=self.run_id, events=list(self.events)))

    def to_json_dict(self) -> dict[str, Any]:
        """The same as builtin values."""
        decoded: dict[str, Any] = msgspec.json.decode(self.to_json())
        return decoded


class _Stored(msgspec.Struct, kw_only=True):
    workflow_id: str = ""
    run_id: str = ""
    events: list[HistoryEvent]
