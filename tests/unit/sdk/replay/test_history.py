"""Histories from files: JSON as it is, an event a line, gzipped; and what is none of these."""

import gzip
from pathlib import Path

import pytest
from stepwell.api.codec import encode_json
from stepwell.replay.history import WorkflowHistory

FILE = Path(__file__).parents[3] / "replay/histories/0.1.0/sequence-cached.json"


def test_the_forms_of_a_history() -> None:
    history = WorkflowHistory.from_json("", FILE.read_bytes())
    lines = b"\n".join(map(encode_json, history.events))
    array = encode_json(list(history.events))
    for text in (history.to_json().encode(), array, lines, lines + b"\n", b" \n" + array):
        for data in (text, gzip.compress(text)):
            read = WorkflowHistory.from_json("", data)
            assert (read.workflow_id, read.events) == (history.workflow_id, history.events)
    (first, *_) = history.events
    assert len(WorkflowHistory.from_json("", encode_json(first)).events) == 1


def test_what_is_no_history() -> None:
    data = gzip.compress(FILE.read_bytes())
    for bad, message in (
        (data[:-20], "was cut"),
        (b"\x1f\x8bnonsense", "is none"),
        (gzip.compress(b" " * 110_000_000, 1), "longer than any history"),
        (b"", "not a stored history"),
        (b"[]", "was it cut"),
        (b'[{"event_id": 1}]', "not a stored history"),
        (b'{"events": [{"event_id": 1, "event_time": "2026-01-01T00:00:00Z", "attributes": {"type": "X"}}]}', "X"),
        (b'{"event_id":1}\n{"event_id":2}', "not a stored history"),
    ):
        with pytest.raises(ValueError, match=message):
            WorkflowHistory.from_json("", bad)
