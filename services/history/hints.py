"""Hints in the form in which a task queue outside this process carries them. Pure.

A hint says where work may wait, never what it is: whoever takes it asks the engine, which looks at the newest state. So
a hint may be old, repeated, or made by somebody else, and costs a look at most.
"""

import json
from collections.abc import Hashable
from typing import NamedTuple

import msgspec
from stepwell.api.common import Priority

from .commit import ExecutionKey
from .ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef

Ref = WorkflowTaskRef | ActivityTaskRef | QueryTaskRef

MAX_HINT_BYTES = 16_384
"""Several times what the longest ids need, as JSON escapes them."""


_VERSION = 1
"""Of hints that say none. A later release may add fields to it, which this one ignores."""


class UnreadableHint(ValueError):
    """Not a hint of this release or an earlier one. The message says what is wrong, and nothing of what it holds."""


class Hint(NamedTuple):
    ref: Ref
    priority: Priority | None = None
    """For the order in which a process gives out what it has of the queue."""


class _Hint(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="k"):
    namespace: str = msgspec.field(name="n")
    workflow_id: str = msgspec.field(name="i")
    run_id: str = msgspec.field(name="r")
    version: int = msgspec.field(name="v", default=_VERSION)
    priority: Priority | None = msgspec.field(name="p", default=None)


class _WorkflowTask(_Hint, frozen=True, omit_defaults=True, kw_only=True, tag="w"):
    attempt: int = msgspec.field(name="a", default=1)


class _ActivityTask(_Hint, frozen=True, omit_defaults=True, kw_only=True, tag="a"):
    scheduled_event_id: int = msgspec.field(name="s")
    attempt: int = msgspec.field(name="a", default=1)


class _Query(_Hint, frozen=True, omit_defaults=True, kw_only=True, tag="q"):
    query_id: str = msgspec.field(name="q")


_decoder = msgspec.json.Decoder(_WorkflowTask | _ActivityTask | _Query)


def encode_hint(ref: Ref, priority: Priority | None = None) -> str:
    """JSON in ASCII: queues refuse some characters that an id may have."""
    namespace, workflow_id = ref.key
    hint: _Hint
    match ref:
        case WorkflowTaskRef():
            hint = _WorkflowTask(
                namespace=namespace,
                workflow_id=workflow_id,
                run_id=ref.run_id,
                attempt=ref.attempt,
                priority=priority,
            )
        case ActivityTaskRef():
            hint = _ActivityTask(
                namespace=namespace,
                workflow_id=workflow_id,
                run_id=ref.run_id,
                scheduled_event_id=ref.scheduled_event_id,
                attempt=ref.attempt,
                priority=priority,
            )
        case _:
            hint = _Query(
                namespace=namespace,
                workflow_id=workflow_id,
                run_id=ref.run_id,
                query_id=ref.query_id,
                priority=priority,
            )
    return json.dumps(msgspec.to_builtins(hint), separators=(",", ":"))


def message_of(ref: Hashable, priority: Priority | None = None) -> str | None:
    """The hint for whatever waits in a queue of this process; None for what is no work for others."""
    return encode_hint(ref, priority) if isinstance(ref, Ref) else None


def decode_hint(text: str) -> Ref:
    """Reverse of :func:`encode_hint`, less the priority. Raises :class:`UnreadableHint`."""
    return read_hint(text).ref


def read_hint(text: str) -> Hint:
    """Reverse of :func:`encode_hint`. Raises :class:`UnreadableHint`."""
    if len(text) > MAX_HINT_BYTES:
        raise UnreadableHint(f"a hint has {len(text)} characters, the most is {MAX_HINT_BYTES}")
    try:
        hint = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise UnreadableHint(f"not a hint of this release: {_what(error)}") from None
    if hint.version != _VERSION:
        raise UnreadableHint(f"a hint of version {hint.version}, this release reads version {_VERSION}")
    key = ExecutionKey(hint.namespace, hint.workflow_id)
    match hint:
        case _WorkflowTask():
            return Hint(WorkflowTaskRef(key, hint.run_id, hint.attempt), hint.priority)
        case _ActivityTask():
            return Hint(ActivityTaskRef(key, hint.run_id, hint.scheduled_event_id, hint.attempt), hint.priority)
        case _:
            return Hint(QueryTaskRef(key, hint.run_id, hint.query_id), hint.priority)


def _what(error: Exception) -> str:
    """msgspec says what does not fit and where; the others would repeat what they were given."""
    return str(error) if isinstance(error, msgspec.MsgspecError) else type(error).__name__
