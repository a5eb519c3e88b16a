"""Hints as a queue carries them: what was encoded comes back, and nothing else is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api.common import Priority

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.hints import (
    MAX_HINT_BYTES,
    Ref,
    UnreadableHint,
    decode_hint,
    encode_hint,
    message_of,
    read_hint,
)
from stepwell_server.history.ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
KEYS = st.builds(ExecutionKey, TEXTS, TEXTS)
REFS = st.one_of(
    st.builds(WorkflowTaskRef, KEYS, TEXTS, st.integers(1, 2**31)),
    st.builds(ActivityTaskRef, KEYS, TEXTS, st.integers(1, 2**31), st.integers(1, 2**31)),
    st.builds(QueryTaskRef, KEYS, TEXTS, TEXTS),
)


@given(REFS)
def test_a_hint_comes_back_as_it_was_in_characters_that_every_queue_takes(ref: Ref) -> None:
    text = encode_hint(ref)
    assert all(" " <= character <= "~" for character in text)
    assert decode_hint(text) == ref


def test_the_longest_ids_fit() -> None:
    key = ExecutionKey("n" * 255, "\U0001f600" * 250)
    assert len(encode_hint(ActivityTaskRef(key, "r" * 36, 10**9, 10**9))) < MAX_HINT_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        '{"k":"z"}',
        '{"k":"w","n":"a","i":"b"}',
        '{"k":"a","n":"a","i":"b","r":"c","s":"5"}',
        '{"k":"w"' + " " * MAX_HINT_BYTES + "}",
        '{"k":"w","n":"hello","i":"b","r":"c","v":2}',
        '{"k":"w","n":"hello\ud800","i":"b","r":"c"}',
        "[" * MAX_HINT_BYTES,
    ],
)
def test_anything_else_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(UnreadableHint) as refused:
        decode_hint(text)
    assert "hello" not in str(refused.value)


@given(REFS, st.builds(Priority, priority_key=st.integers(1, 5), fairness_key=TEXTS))
def test_a_priority_travels_and_is_left_out_where_there_is_none(ref: Ref, priority: Priority) -> None:
    assert read_hint(encode_hint(ref, priority)) == (ref, priority)
    assert read_hint(encode_hint(ref)) == (ref, None)


def test_only_what_is_work_for_others_is_a_message() -> None:
    key = ExecutionKey("default", "order")
    assert message_of("anything") is None
    assert message_of(WorkflowTaskRef(key, "run", 1)) == encode_hint(WorkflowTaskRef(key, "run", 1))


def test_fields_of_a_later_release_are_ignored() -> None:
    ref = WorkflowTaskRef(ExecutionKey("default", "order"), "run", 1)
    assert decode_hint(encode_hint(ref)[:-1] + ',"z":[1]}') == ref
