"""What a run was started with besides its arguments, and what it says about itself."""

from collections.abc import Mapping
from typing import Any

from ..api.limits import MAX_DETAILS_BYTES
from ..replay.runtime import current_runtime

_REQUIRED: Any = object()


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
    size = len(description.encode(errors="replace"))
    if size > MAX_DETAILS_BYTES:
        raise ValueError(f"the current details have {size} bytes, the limit is {MAX_DETAILS_BYTES}; shorten them")
    runtime.current_details = description


def get_current_details() -> str:
    """What :func:`set_current_details` said last; empty before."""
    return current_runtime().current_details
