"""What requests about namespaces must be like (MT-01, MT-02, MT-04)."""

from collections.abc import Mapping
from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import (
    MAX_CALLERS_ALLOWED,
    MAX_DETAILS_BYTES,
    MAX_DURATION,
    MAX_ID_BYTES,
    MAX_LIST_PAGE,
    MAX_LONG_POLLS,
    MAX_NAMESPACE_BYTES,
    MAX_NAMESPACE_NOTE_BYTES,
    MAX_NAMESPACE_NOTES,
    MAX_NONCE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_PENDING_ACTIVITIES,
    MAX_PENDING_CHILDREN,
    MAX_PENDING_EXTERNAL_CANCELS,
    MAX_PENDING_EXTERNAL_SIGNALS,
    MAX_SEARCH_ATTRIBUTES,
    MIN_NAMESPACE_PAYLOAD_BYTES,
    MIN_RETENTION,
)
from stepwell.api.namespaces import NamespaceLimits

from ..visibility.attributes import RESERVED_PREFIXES, SYSTEM
from . import fields

TYPES = ("Bool", "Datetime", "Double", "Int", "Keyword", "KeywordList", "Text")
MAX_DELAY = timedelta(days=30)
"""For which a deleted namespace may keep its data."""

_DEFAULT_PAGE = 100
_PENDING = {
    "max_pending_activities": MAX_PENDING_ACTIVITIES,
    "max_pending_children": MAX_PENDING_CHILDREN,
    "max_pending_signals": MAX_PENDING_EXTERNAL_SIGNALS,
    "max_pending_cancels": MAX_PENDING_EXTERNAL_CANCELS,
}
_RATES = ("requests_per_second", "starts_per_second", "dispatches_per_second", "visibility_per_second")


def name(value: str) -> None:
    """Also no slash: access is granted by path."""
    fields.namespace(value)
    if "/" in value:
        raise InvalidArgument(
            f"namespace {value!r} contains '/', which stands between the parts of paths that access is granted by; use "
            "another character",
            field="namespace",
        )


def register_namespace(request: r.RegisterNamespaceRequest) -> None:
    name(request.namespace)
    _told(request.description, request.owner_email, request.data)
    _retention(request.retention)
    _limits(request.limits)
    _attributes(request.search_attributes)
    _callers(request.callers_allowed)
    fields.optional_identifier("request_id", request.request_id, MAX_NONCE_BYTES)


def update_namespace(request: r.UpdateNamespaceRequest) -> None:
    name(request.namespace)
    _told(request.description or "", request.owner_email or "", request.data or {})
    _retention(request.retention)
    if request.limits is not None:
        _limits(request.limits)
    _attributes(request.search_attributes or {})
    _removed(request.remove_search_attributes)
    _callers(request.callers_allowed or ())


def delete_namespace(request: r.DeleteNamespaceRequest) -> None:
    name(request.namespace)
    fields.wait("delay", request.delay)
    if request.delay is not None and request.delay > MAX_DELAY:
        raise InvalidArgument(
            f"delay is {fields.seconds(request.delay)}, above the limit of {fields.seconds(MAX_DELAY)}; use a shorter "
            "one, and deprecate the namespace until then",
            field="delay",
        )


def list_namespaces(request: r.ListNamespacesRequest) -> tuple[str, int]:
    """The name behind which to begin, and how many to list."""
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out="ask for less and read on")
    try:
        after = request.next_page_token.decode()
    except UnicodeDecodeError:
        after = "#"
    if "#" in after or len(request.next_page_token) > MAX_NAMESPACE_BYTES:
        raise InvalidArgument(
            "next_page_token is none of ListNamespaces; send back the one that came with the page before",
            field="next_page_token",
        )
    return after, request.page_size or _DEFAULT_PAGE


def _told(description: str, owner_email: str, data: Mapping[str, str]) -> None:
    fields.text("description", description, MAX_DETAILS_BYTES)
    fields.text("owner_email", owner_email)
    fields.count("data", len(data), MAX_NAMESPACE_NOTES, way_out="keep the others elsewhere")
    for note, value in data.items():
        fields.identifier("data name", note, MAX_NAMESPACE_NOTE_BYTES)
        fields.text(f"data[{note!r}]", value, MAX_NAMESPACE_NOTE_BYTES)


def _retention(value: timedelta | None) -> None:
    if value is None or MIN_RETENTION <= value <= MAX_DURATION:
        return
    raise InvalidArgument(
        f"retention is {fields.seconds(value)}; use {fields.seconds(MIN_RETENTION)} to {fields.seconds(MAX_DURATION)}, "
        "or leave it out for the default",
        field="retention",
    )


def _limits(limits: NamespaceLimits) -> None:
    for field in _RATES:
        fields.rate(f"limits.{field}", getattr(limits, field))
    for field, most in _PENDING.items():
        value = getattr(limits, field)
        if value is not None:
            way_out = "no run may have more than the engine takes"
            fields.count(f"limits.{field}", value, most, minimum=1, way_out=way_out)
    polls, payload = limits.concurrent_long_polls, limits.max_payload_bytes
    if polls is not None:
        fields.count("limits.concurrent_long_polls", polls, MAX_LONG_POLLS, minimum=1, way_out="use a lower one")
    if payload is not None:
        fields.count(
            "limits.max_payload_bytes",
            payload,
            MAX_PAYLOAD_BYTES,
            minimum=MIN_NAMESPACE_PAYLOAD_BYTES,
            way_out="no namespace may send more than the API takes",
        )


def _callers(names: tuple[str, ...]) -> None:
    fields.count("callers_allowed", len(names), MAX_CALLERS_ALLOWED, way_out="'*' allows all")
    for caller in names:
        fields.identifier("callers_allowed", caller, MAX_NAMESPACE_BYTES)
        if "#" in caller:
            raise InvalidArgument(
                f"callers_allowed has {caller!r}, which is no namespace, since those have no '#'; give their names, or "
                "'*' for all",
                field="callers_allowed",
            )


def _removed(names: tuple[str, ...]) -> None:
    field = "remove_search_attributes"
    fields.count(field, len(names), MAX_SEARCH_ATTRIBUTES, way_out="use fewer")
    for attribute in names:
        fields.identifier(field, attribute, MAX_ID_BYTES)
        if attribute in SYSTEM or attribute.startswith(RESERVED_PREFIXES):
            raise InvalidArgument(
                f"search attribute {attribute!r} is one of the system's own, which every namespace has; leave it out",
                field=field,
            )


def _attributes(types: Mapping[str, str]) -> None:
    fields.count("search_attributes", len(types), MAX_SEARCH_ATTRIBUTES, way_out="use fewer")
    for attribute, kind in types.items():
        fields.identifier("search_attributes name", attribute, MAX_ID_BYTES)
        if attribute in SYSTEM or attribute.startswith(RESERVED_PREFIXES):
            raise InvalidArgument(
                f"search attribute {attribute!r} is one of the system's own, or has a name that is kept for those; use "
                "another name",
                field="search_attributes",
            )
        if kind not in TYPES:
            raise InvalidArgument(
                f"search attribute {attribute!r} has the type {kind!r}; use one of {', '.join(TYPES)}",
                field="search_attributes",
            )
