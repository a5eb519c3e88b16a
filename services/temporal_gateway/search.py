"""Search attributes that the system itself sets have Temporal's names outside and ours inside; in queries too."""

import re

import msgspec
from temporalio.api.common.v1 import message_pb2 as pb

_OURS = {
    "TemporalChangeVersion": "StepwellChangeVersion",
    "TemporalSchedulePaused": "StepwellSchedulePaused",
    "TemporalScheduledById": "StepwellScheduledById",
    "TemporalScheduledStartTime": "StepwellScheduledStartTime",
    "TemporalScheduledByBackfill": "StepwellScheduledByBackfill",
}
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}
_QUOTED_OR_NAME = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|\b(?:""" + "|".join(_OURS) + r")\b")


def their_name(attribute: str) -> str:
    return _THEIRS.get(attribute, attribute)


def our_name(attribute: str) -> str:
    return _OURS.get(attribute, attribute)


def query_of(text: str) -> str:
    """With our names; what is in quotes is a value, and stays."""
    return _QUOTED_OR_NAME.sub(lambda match: _OURS.get(match[0], match[0]), text)


def to_group_value(value: str | None) -> pb.Payload:
    metadata = {"encoding": b"json/plain", "type": b"Keyword"}
    return pb.Payload(metadata=metadata, data=msgspec.json.encode(value))
