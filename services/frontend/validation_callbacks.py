"""Checks of completion callbacks (LC-10). Whether their addresses are allowed is for the engine to say."""

import re
from collections.abc import Sequence

from stepwell.api.callbacks import Callback
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_CALLBACK_BYTES, MAX_CALLBACK_URL, MAX_CALLBACKS

from ..history.callback_addresses import parse_url
from . import fields

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?", re.ASCII)
_OURS = frozenset(
    {"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "expect", "te"}
    | {"trailer", "upgrade", "proxy-authorization", "proxy-connection", "keep-alive", "stepwell-callback-id"}
)


def completion_callbacks(callbacks: Sequence[Callback]) -> None:
    field = "completion_callbacks"
    fields.count(f"number of {field}", len(callbacks), MAX_CALLBACKS, way_out="let one of them tell the others")
    size = 0
    for index, callback in enumerate(callbacks):
        name = f"{field}[{index}]"
        fields.identifier(f"{name}.url", callback.url, MAX_CALLBACK_URL)
        if parse_url(callback.url) is None:
            raise InvalidArgument(
                f"{name}.url {callback.url[:100]!r} is no URL that can be called: use http or https, a host, without "
                "user name, fragment or characters that are not ASCII (write them with %)",
                field=field,
            )
        _headers(name, callback)
        size += len(callback.url) + sum(len(key) + len(value) for key, value in callback.headers.items())
    if size > MAX_CALLBACK_BYTES:
        raise InvalidArgument(
            f"{field} have {size} bytes of URLs and headers, above the limit of {MAX_CALLBACK_BYTES}; use fewer or "
            "shorter ones",
            field=field,
        )


def _headers(name: str, callback: Callback) -> None:
    for key, value in callback.headers.items():
        if _NAME.fullmatch(key) is None or _VALUE.fullmatch(value) is None:
            raise InvalidArgument(
                f"{name}.headers has {key[:100]!r}, of which name or value is none that HTTP can carry; use ASCII "
                "without control characters, and a name of 1 to 100 letters, digits and signs",
                field="completion_callbacks",
            )
        if key.lower() in _OURS:
            raise InvalidArgument(
                f"{name}.headers has {key!r}, which is set by what sends the callback; leave it out",
                field="completion_callbacks",
            )
