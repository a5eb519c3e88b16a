"""Hints in the form in which a task queue outside this process carries them. Pure.

A hint says where work may wait, never what it is: whoever takes it asks the engine, which looks at the newest state. So
a hint may be old, repeated, or made by somebody else, and costs a look at most.
"""

import json

import msgspec

from .commit import ExecutionKey
from .ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef

Ref = WorkflowTaskRef | ActivityTaskRef | QueryTaskRef

MAX_HINT_BYTES = 16_384
"""Several times what the longest ids need, as JSON escapes them."""


class UnreadableHint(ValueError):
    """Not a hint of this release or an earlier one. The message says what is wrong, and nothing of what it holds."""


class _Hint(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="k"):
    namespace: str = msgspec.field(name="n")
    workflow_id: str = msgspec.field(name="i")
    run_id: str = msgspec.field(name="r")


class _WorkflowTask(_Hint, frozen=True, omit_defaults=True, kw_only=True, tag="w"):
    attempt: int = msgspec.field(name="a", default=1)


class _ActivityTask(_Hint, frozen=True, omit_defaults=True, kw_only=True, tag="a"):
    scheduled_event_id: int = msgspec.field(name="s")
    attempt: int = msgspec.field(name="a", default=1)


class _Query(_Hint, frozen=True, omit_defaults=True, kw_only=True, tag="q"):
    query_id: str = msgspec.field(name="q")


_decoder = msgspec.json.Decoder(_WorkflowTask | _ActivityTask | _Query)


def encode_hint(ref: Ref) -> str:
    """JSON in ASCII: queues refuse some characters that an id may have."""
    namespace, workflow_id = ref.key
    hint: _Hint
    match ref:
        case WorkflowTaskRef():
            hint = _WorkflowTask(namespace=namespace, workflow_id=workflow_id, run_id=ref.run_id, attempt=ref.attempt)
        case ActivityTaskRef():
            hint = _ActivityTask(
                namespace=namespace,
                workflow_id=workflow_id,
                run_id=ref.run_id,
                scheduled_event_id=ref.scheduled_event_id,
                attempt=ref.attempt,
            )
        case _:
            hint = _Query(namespace=namespace, workflow_id=workflow_id, run_id=ref.run_id, query_id=ref.query_id)
    return json.dumps(msgspec.to_builtins(hint), separators=(",", ":"))


def decode_hint(text: str) -> Ref:
    """Reverse of :func:`encode_hint`. Raises :class:`UnreadableHint`."""
    if len(text) > MAX_HINT_BYTES:
        raise UnreadableHint(f"a hint has {len(text)} characters, the most is {MAX_HINT_BYTES}")
    try:
        hint = _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise UnreadableHint(f"not a hint of this release: {error}") from None
    key = ExecutionKey(hint.namespace, hint.workflow_id)
    match hint:
        case _WorkflowTask():
            return WorkflowTaskRef(key, hint.run_id, hint.attempt)
        case _ActivityTask():
            return ActivityTaskRef(key, hint.run_id, hint.scheduled_event_id, hint.attempt)
        case _:
            return QueryTaskRef(key, hint.run_id, hint.query_id)
