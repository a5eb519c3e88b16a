"""Markers of changes of code: ``RecordMarker`` -> MarkerRecorded, once per change and run (VE-01, VE-03, WC-12).

A patch is a change with two answers; its marker counts as version 1, so that a change may go on from the one to the
other.
"""

import msgspec

from ...api.codec import decode_json, encode_json
from ...api.commands import RecordMarker
from ...api.events import EventAttributes, MarkerRecorded
from ...api.payloads import ENCODING, ENCODING_JSON, Payload
from .command import Ask

PATCH_MARKER = "patch"
VERSION_MARKER = "version"

DEFAULT_VERSION = -1
"""Of the code before the change: what a run is on that has no marker."""

PATCHED_VERSION = 1

_METADATA = {ENCODING: ENCODING_JSON}


def change_of(attributes: EventAttributes) -> tuple[str, int] | None:
    """The change and version that a recorded marker is about; None for any other event."""
    if type(attributes) is not MarkerRecorded:
        return None
    details = attributes.details
    if attributes.marker_name == PATCH_MARKER and "patch_id" in details:
        return details["patch_id"].data.decode("utf-8", "replace").strip('"'), PATCHED_VERSION
    if attributes.marker_name == VERSION_MARKER and "change_id" in details and "version" in details:
        try:
            return decode_json(details["change_id"].data, str), decode_json(details["version"].data, int)
        except msgspec.DecodeError:
            return None  # somebody else's marker
    return None


class ChangeMarker(Ask):
    """Says in the history which way this run takes at a change."""

    __slots__ = ("change_id", "deprecated")

    def __init__(self, change_id: str, *, deprecated: bool) -> None:
        self.change_id = change_id
        self.deprecated = deprecated

    def matches(self, recorded: EventAttributes) -> bool:
        change = change_of(recorded)
        return change is not None and change[0] == self.change_id


class PatchMarker(ChangeMarker):
    """Of ``workflow.patched``."""

    __slots__ = ()

    def command(self) -> RecordMarker:
        return RecordMarker(
            marker_name=PATCH_MARKER,
            details={"patch_id": _json(self.change_id), "deprecated": _json(self.deprecated)},
        )

    def describe(self) -> str:
        return f'RecordMarker (patch "{self.change_id}")'


class VersionMarker(ChangeMarker):
    """Of ``workflow.version``."""

    __slots__ = ("version",)

    def __init__(self, change_id: str, version: int, *, deprecated: bool) -> None:
        super().__init__(change_id, deprecated=deprecated)
        self.version = version

    def command(self) -> RecordMarker:
        return RecordMarker(
            marker_name=VERSION_MARKER,
            details={
                "change_id": _json(self.change_id),
                "version": _json(self.version),
                "deprecated": _json(self.deprecated),
            },
        )

    def describe(self) -> str:
        return f'RecordMarker (version {self.version} of "{self.change_id}")'


def _json(value: str | int) -> Payload:
    return Payload(metadata=_METADATA, data=encode_json(value))
