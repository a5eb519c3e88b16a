"""What a run was started with besides its arguments, and what it says about itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.limits import MAX_DETAILS_BYTES
from ..api.payloads import ENCODING, ENCODING_NULL, Payload
from ..converter.errors import ArgumentError, PayloadError
from ..replay.machines.attributes import MemoUpsert, SearchAttributesUpsert
from ..replay.runtime import current_runtime
from ..search_attributes import SearchAttributeUpdate, TypedSearchAttributes, changes_of

_REQUIRED: Any = object()
_NULL = Payload(metadata={ENCODING: ENCODING_NULL})


def memo() -> Mapping[str, Any]:
    """The run's memo: values that its starter attached for people and tools to see."""
    runtime = current_runtime()
    return {key: runtime.payload_converter.from_payload(value, Any) for key, value in runtime.memo.items()}


def memo_value(key: str, default: Any = _REQUIRED, *, type_hint: Any = Any) -> Any:
    """One value of the memo, as ``type_hint``. Raises ``KeyError`` when it is not there and there is no default."""
    runtime = current_runtime()
    value = runtime.memo.get(key)
    if value is not None:
        return runtime.payload_converter.from_payload(value, type_hint)
    if default is _REQUIRED:
        raise KeyError(f"the memo has no {key!r}; it has: {', '.join(sorted(runtime.memo)) or 'nothing'}")
    return default


def upsert_memo(updates: Mapping[str, Any]) -> None:
    """Change the memo: what is given replaces or adds, and None takes a name away. ``memo`` tells of it at once,
    describe and list once the workflow task is recorded.

    Raises ``ValueError`` for nothing to change, ``TypeError`` for a name that is no text, and ``ArgumentError`` for a
    value that does not survive encoding.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("changing the memo")
    if not isinstance(updates, Mapping):
        raise TypeError(
            f"upsert_memo: updates must be a dict of names to values, not {type(updates).__name__}; "
            'such as {"note": "gift"}'
        )
    if not updates:
        raise ValueError("upsert_memo: there is nothing to change; give at least one name")
    values: dict[str, Payload] = {}
    for name, value in updates.items():
        if not isinstance(name, str):
            raise TypeError(f"upsert_memo: {name!r} is no name; names are text")
        try:
            values[name] = _NULL if value is None else runtime.payload_converter.to_payload(value)
        except PayloadError as error:
            raise ArgumentError(f"upsert_memo, {name!r}: {error}") from error
    runtime.memo = _merged(runtime.memo, values)
    runtime.ask(MemoUpsert(values))


def search_attributes() -> TypedSearchAttributes:
    """By what the run can be found now."""
    return TypedSearchAttributes.of_payloads(current_runtime().search_attributes)


def upsert_search_attributes(attributes: Sequence[SearchAttributeUpdate[Any]]) -> None:
    """Change by what the run can be found: ``[key.value_set(value), other.value_unset()]``.

    Raises ``ValueError`` for nothing to change, a name twice, or a name of the system's own.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("changing search attributes")
    values = changes_of("upsert_search_attributes", attributes)
    if not values:
        raise ValueError("upsert_search_attributes: there is nothing to change; give at least one update")
    runtime.search_attributes = _merged(runtime.search_attributes, values)
    runtime.ask(SearchAttributesUpsert(values))


def _merged(values: Mapping[str, Payload], changes: Mapping[str, Payload]) -> dict[str, Payload]:
    """As the engine does it."""
    after = {**values, **changes}
    return {name: value for name, value in after.items() if value.metadata.get(ENCODING) != ENCODING_NULL}


def instance() -> Any:
    """The object whose methods are the workflow and its handlers; None in a function-style workflow."""
    return current_runtime().handlers.instance


def set_current_details(description: str) -> None:
    """Say in a few words where the workflow is, for people who look at it: the query ``__workflow_metadata`` tells.
    Nothing is recorded, so it costs nothing.

    Raises ``ValueError`` above 20,000 bytes.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("setting the current details")
    if not isinstance(description, str):
        raise TypeError(f"set_current_details: description must be text, not {type(description).__name__}")
    size = len(description.encode(errors="replace"))
    if size > MAX_DETAILS_BYTES:
        raise ValueError(f"the current details have {size} bytes, the limit is {MAX_DETAILS_BYTES}; shorten them")
    runtime.current_details = description


def get_current_details() -> str:
    """What :func:`set_current_details` said last; empty before."""
    return current_runtime().current_details
