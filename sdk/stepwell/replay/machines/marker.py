"""A patch marker: ``RecordMarker`` -> MarkerRecorded, once per patch and run (VE-01, WC-12)."""

from ...api.codec import encode_json
from ...api.commands import RecordMarker
from ...api.events import EventAttributes, MarkerRecorded
from ...api.payloads import ENCODING, ENCODING_JSON, Payload
from .command import Ask

PATCH_MARKER = "patch"
_METADATA = {ENCODING: ENCODING_JSON}


def patch_id_of(attributes: EventAttributes) -> str | None:
    """The patch that a recorded marker is about; None for any other event."""
    if type(attributes) is not MarkerRecorded or attributes.marker_name != PATCH_MARKER:
        return None
    payload = attributes.details.get("patch_id")
    return None if payload is None else payload.data.decode("utf-8", "replace").strip('"')


class PatchMarker(Ask):
    """Says in the history that this run takes the new path of a patch."""

    __slots__ = ("deprecated", "patch_id")

    def __init__(self, patch_id: str, *, deprecated: bool) -> None:
        self.patch_id = patch_id
        self.deprecated = deprecated

    def command(self) -> RecordMarker:
        return RecordMarker(
            marker_name=PATCH_MARKER,
            details={
                "patch_id": Payload(metadata=_METADATA, data=encode_json(self.patch_id)),
                "deprecated": Payload(metadata=_METADATA, data=encode_json(self.deprecated)),
            },
        )

    def matches(self, recorded: EventAttributes) -> bool:
        return patch_id_of(recorded) == self.patch_id

    def describe(self) -> str:
        return f'RecordMarker (patch "{self.patch_id}")'
