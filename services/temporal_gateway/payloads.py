"""Payloads, byte for byte: what a Temporal SDK wrote comes back as it was, also what we do not know.

Our metadata is text, theirs bytes. Bytes that are no UTF-8 are kept in base64 under their name with a suffix; a name
that happens to end in the suffix is kept in the same way, so the two can never be mixed up.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping

from stepwell.api.payloads import ENCODING, JSON_METADATA, Payload, Payloads
from temporalio.api.common.v1 import message_pb2 as pb

from .search import their_name

_BASE64 = ";base64"
_EXTERNAL = "temporal/external-payloads" + _BASE64
_JSON = b"json/plain"


def payload_of(value: pb.Payload) -> Payload:
    metadata = value.metadata
    if len(metadata) == 1 and metadata.get(ENCODING) == _JSON and not value.external_payloads:
        return Payload(metadata=JSON_METADATA, data=value.data)
    kept: dict[str, str] = {}
    for name, content in metadata.items():
        _keep(kept, name, content)
    if value.external_payloads:
        others = pb.Payload(external_payloads=value.external_payloads)
        kept[_EXTERNAL] = b64encode(others.SerializeToString()).decode()
    return Payload(metadata=kept, data=value.data)


def _keep(kept: dict[str, str], name: str, content: bytes) -> None:
    if not name.endswith(_BASE64):
        try:
            kept[name] = content.decode()
        except UnicodeDecodeError:
            pass
        else:
            return
    kept[name + _BASE64] = b64encode(content).decode()


def to_payload(payload: Payload) -> pb.Payload:
    if payload.metadata is JSON_METADATA:
        value = pb.Payload(data=payload.data)
        value.metadata[ENCODING] = _JSON  # a sixth of what a map in the constructor takes
        return value
    value = pb.Payload(data=payload.data)
    for name, content in payload.metadata.items():
        if name == _EXTERNAL:
            value.MergeFromString(b64decode(content))
        elif name.endswith(_BASE64):
            value.metadata[name.removesuffix(_BASE64)] = b64decode(content)
        else:
            value.metadata[name] = content.encode()
    return value


def payloads_of(value: pb.Payloads) -> Payloads:
    return tuple([payload_of(one) for one in value.payloads])


def to_payloads(payloads: Payloads) -> pb.Payloads | None:
    """None for none, which leaves the field unset as their servers do."""
    return pb.Payloads(payloads=[to_payload(one) for one in payloads]) if payloads else None


def map_of(values: Mapping[str, pb.Payload]) -> dict[str, Payload]:
    return {name: payload_of(value) for name, value in values.items()}


def to_map(values: Mapping[str, Payload]) -> dict[str, pb.Payload]:
    return {name: to_payload(value) for name, value in values.items()}


def to_header(values: Mapping[str, Payload]) -> pb.Header | None:
    return pb.Header(fields=to_map(values)) if values else None


def to_memo(values: Mapping[str, Payload]) -> pb.Memo | None:
    return pb.Memo(fields=to_map(values)) if values else None


def to_search_attributes(values: Mapping[str, Payload]) -> pb.SearchAttributes | None:
    if not values:
        return None
    return pb.SearchAttributes(indexed_fields={their_name(name): to_payload(value) for name, value in values.items()})
