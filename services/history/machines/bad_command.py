"""A command that cannot be carried out: it fails its whole workflow task, with a named cause (ER-08)."""

import msgspec
from stepwell.api import limits
from stepwell.api.common import UserMetadata
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.failures import Failure
from stepwell.api.payloads import JSON_METADATA, JSON_METADATA_BYTES, Payload, Payloads

_encode = msgspec.json.Encoder().encode
_FEW_CHARACTERS = limits.MAX_ID_BYTES // 4
"""A character has at most four bytes, so that most ids need no encoding to be judged."""


class BadCommand(Exception):
    """The message names the command, the field, the limit and the way out."""

    def __init__(self, cause: WorkflowTaskFailedCause, message: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message


def check_id(cause: WorkflowTaskFailedCause, field: str, value: str) -> None:
    """An id or name: not empty, and at most ``MAX_ID_BYTES`` of UTF-8."""
    size = len(value)
    if size > _FEW_CHARACTERS:
        size = len(value.encode(errors="replace"))
    if not 0 < size <= limits.MAX_ID_BYTES:
        raise BadCommand(
            cause, f"{field} has {size} bytes; it needs at least 1 and at most {limits.MAX_ID_BYTES} (UTF-8)."
        )


def check_payloads(field: str, payloads: Payloads) -> None:
    size = 0
    for payload in payloads:
        size += len(payload.data)
        metadata = payload.metadata
        known = metadata is JSON_METADATA or metadata == JSON_METADATA
        size += JSON_METADATA_BYTES if known else _metadata_size(payload)
    check_size(field, size)


def payload_size(payload: Payload) -> int:
    """As ``payloads.size_of`` counts it, but without encoding: for names in ASCII they agree."""
    return len(payload.data) + _metadata_size(payload)


def _metadata_size(payload: Payload) -> int:
    size = 0
    for name, value in payload.metadata.items():
        size += len(name) + len(value)
    return size


def failure_size(failure: Failure) -> int:
    return len(_encode(failure))


def check_size(field: str, size: int) -> None:
    if size > limits.MAX_PAYLOAD_BYTES:
        raise BadCommand(
            WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE,
            f"{field} has {size} bytes; at most {limits.MAX_PAYLOAD_BYTES} are taken. "
            "Keep large data outside and pass a reference to it.",
        )


def check_namespace(cause: WorkflowTaskFailedCause, namespace: str) -> None:
    """Of another workflow; empty is the run's own."""
    size = len(namespace.encode(errors="replace"))
    if size > limits.MAX_NAMESPACE_BYTES or "#" in namespace or (namespace and min(namespace) < " "):
        raise BadCommand(
            cause,
            f"namespace {namespace[:80]!r} has {size} bytes; a namespace has at most {limits.MAX_NAMESPACE_BYTES} "
            "(UTF-8), no '#' and no control characters, with which the engine's own spaces are named.",
        )


_ENCODED = 4
"""A text is longer as a payload, and longer yet when a codec has encrypted it; the SDK counts the text itself."""


def check_metadata(field: str, metadata: UserMetadata | None) -> UserMetadata | None:
    """Texts for people (PM-27)."""
    if metadata is not None:
        for name, payload, limit in (
            ("summary", metadata.summary, limits.MAX_SUMMARY_BYTES),
            ("details", metadata.details, limits.MAX_DETAILS_BYTES),
        ):
            if payload is not None and len(payload.data) > _ENCODED * limit:
                raise BadCommand(
                    WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE,
                    f"the {name} of {field} has {len(payload.data)} bytes; a text of at most {limit} is taken. "
                    "Shorten it.",
                )
    return metadata
