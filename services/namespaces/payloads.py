"""The limit of a namespace on payloads, whatever brings them: calls, schedules, batches (MT-04). Pure."""

from collections.abc import Iterator
from typing import Any

from stepwell.api.errors import PayloadTooLarge
from stepwell.api.payloads import size_of
from stepwell.api.schedules import Schedule

_LISTS = ("input", "signal_input", "update_input", "query_args", "details")
_MAPS = ("memo",)


def check_payloads(record: Any, limit: int, namespace: str) -> None:
    """Of a request, a start, or the operation of a batch, with what is inside it. Raises PayloadTooLarge."""
    for prefix, part in _parts(record):
        for field in _LISTS:
            value = getattr(part, field, ())
            if value and isinstance(value, tuple):
                _check(prefix + field, size_of(value), limit, namespace)
        for field in _MAPS:
            value = getattr(part, field, None)
            if value:
                _check(prefix + field, size_of(tuple(value.values())), limit, namespace)


def _parts(record: Any) -> Iterator[tuple[str, Any]]:
    yield "", record
    schedule = getattr(record, "schedule", None)
    if isinstance(schedule, Schedule) and schedule.action.start_workflow is not None:
        yield "schedule.action.start_workflow.", schedule.action.start_workflow
    operation = getattr(record, "operation", None)
    if operation is not None:
        for prefix, part in _parts(operation):
            yield f"operation.{prefix}", part
    for index, one in enumerate(getattr(record, "post_reset_operations", ())):
        if one.signal_workflow is not None:
            yield f"post_reset_operations[{index}].signal_workflow.", one.signal_workflow


def _check(field: str, size: int, limit: int, namespace: str) -> None:
    if size > limit:
        raise PayloadTooLarge(
            f"{field} has {size} bytes, above the limit of {limit} of namespace {namespace!r}; store the data "
            "elsewhere and pass a reference, or have the limit raised",
            field=field,
        )
