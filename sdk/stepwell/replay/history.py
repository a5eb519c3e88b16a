"""A history of one run: fetched by a client, kept in tests and in CI as JSON, replayed later."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..api.codec import decode_json, encode_json
from ..api.events import HistoryEvent, WorkflowExecutionStarted, WorkflowTaskFailed
from ..api.limits import MAX_HISTORY_BYTES
from .temporal_history import is_exported, read_events

_GZIP = b"\x1f\x8b"
_LONGEST = 2 * MAX_HISTORY_BYTES
_BEGINNING = 1_000
"""Bytes that have the first names of an event."""
_lines = msgspec.json.Decoder(HistoryEvent)


class _Stored(msgspec.Struct, kw_only=True):
    workflow_id: str = ""
    events: list[HistoryEvent]


@dataclass(frozen=True)
class WorkflowHistory:
    """All events of one run, in order, from 1 on."""

    workflow_id: str
    events: Sequence[HistoryEvent]

    @property
    def run_id(self) -> str:
        """Raises ``ValueError`` when the history does not begin with ``WorkflowExecutionStarted``."""
        run_id = _first(self.events).original_execution_run_id
        for event in self.events:
            # a reset made another run of it
            if isinstance(event.attributes, WorkflowTaskFailed) and event.attributes.new_run_id:
                run_id = event.attributes.new_run_id
        return run_id

    @classmethod
    def from_json(cls, workflow_id: str, history: str | bytes | Mapping[str, Any]) -> "WorkflowHistory":
        """From ``{"events": […]}``, a plain list of events, or one event a line, as :meth:`to_json`, ``stepwell
        workflow show --output json`` and exports give them; also gzipped. Or what Temporal's command line, UI and SDKs
        export. An empty ``workflow_id`` means the one in the history.

        Raises ``ValueError`` naming the place that is not a history.
        """
        try:
            if isinstance(history, Mapping):
                stored = _exported(history) or msgspec.convert(history, _Stored)
            else:
                stored = _decoded(_plain(history.encode() if isinstance(history, str) else history))
        except msgspec.DecodeError as error:
            raise ValueError(f"not a stored history: {error}") from error
        first = _first(stored.events)
        return cls(workflow_id or stored.workflow_id or first.workflow_id, tuple(stored.events))

    def to_json(self) -> str:
        return encode_json(_Stored(workflow_id=self.workflow_id, events=list(self.events))).decode()

    def to_json_dict(self) -> dict[str, Any]:
        """The same as builtin values."""
        decoded: dict[str, Any] = msgspec.json.decode(self.to_json())
        return decoded


def _decoded(data: bytes) -> _Stored:
    data = data.strip()
    if data.startswith(b"[") and b'"eventId"' not in data[:_BEGINNING]:
        return _Stored(events=decode_json(data, list[HistoryEvent]))
    if data.startswith(b'{"event_id"'):
        return _Stored(events=_lines.decode_lines(data))
    if b'"eventId"' in data[:_BEGINNING]:
        return _exported(msgspec.json.decode(data)) or decode_json(data, _Stored)
    return decode_json(data, _Stored)


def _exported(history: Any) -> _Stored | None:
    """None when it is not one of Temporal's."""
    events = history.get("events") if isinstance(history, Mapping) else history
    if not isinstance(events, list) or not is_exported(events):
        return None
    return _Stored(events=read_events(events))


def _plain(data: bytes) -> bytes:
    """Raises ``ValueError`` for what is cut, or has more than a history can."""
    if not data.startswith(_GZIP):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    try:
        plain = unpacking.decompress(data, _LONGEST)
    except zlib.error as error:
        raise ValueError(f"not a stored history: it begins as a gzip file does, and is none ({error})") from error
    if not unpacking.eof:
        why = "is longer than any history" if unpacking.unconsumed_tail else "was cut"
        raise ValueError(f"not a stored history: the gzip file {why}")
    return plain


def _first(events: Sequence[HistoryEvent]) -> WorkflowExecutionStarted:
    first = events[0].attributes if events else None
    if not isinstance(first, WorkflowExecutionStarted):
        raise ValueError("not a history: the first event is not WorkflowExecutionStarted; was it cut?")
    return first
