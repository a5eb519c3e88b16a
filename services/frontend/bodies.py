"""Bodies of requests, as every transport reads them, and what is said about those that cannot be read."""

from typing import Any

import msgspec
from stepwell.api.codec import decode_json, explain
from stepwell.api.errors import InvalidArgument, NotFound, PayloadTooLarge
from stepwell.api.operations import Operation

API_PREFIX = "/api/v1/"

_HINTS = {
    "duration": 'write durations as ISO 8601 text, such as "PT30S" or "P1DT12H"',
    "base64": "write bytes as base64 with padding",
    "": f"GET {API_PREFIX}openapi.json says what it takes",
}
"""What to do about a body, by a word of the decoder's complaint."""


class UnsupportedMediaType(InvalidArgument):
    http_status = 415


def decode_body(body: bytes, operation: Operation[Any, Any]) -> Any:
    """The operation's request record. Raises InvalidArgument."""
    try:
        return decode_json(body, operation.request_type)
    except msgspec.ValidationError as error:
        field, what = explain(error, _HINTS)
        raise InvalidArgument(f"the body is no {operation.name} request: {what}", field=field or "body") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"the body is not JSON: {error}", field="body") from error
    except RecursionError:
        raise InvalidArgument("the body is nested too deeply; send flatter JSON", field="body") from None


def too_large(size: int, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the request has {size} bytes or more, above the limit of {limit}; "
        "send less at once, or store the data elsewhere and pass a reference",
        field="body",
    )


def no_json(content_type: str) -> UnsupportedMediaType:
    """The content type is required, since a browser sends this one across sites only after asking."""
    return UnsupportedMediaType(
        f"content type is {content_type[:100]!r}; send JSON as application/json", header="Content-Type"
    )


def no_such_path(raw_path: str) -> NotFound:
    return NotFound(f"no operation has the path {raw_path!r}; GET {API_PREFIX}openapi.json lists them all")
