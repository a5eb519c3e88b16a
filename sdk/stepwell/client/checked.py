"""Requests with values of the wrong type, refused at the call: the same over HTTP and in this process, where nothing is
serialised that would find them.
"""

from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ..api.codec import explain
from ..api.errors import InvalidArgument
from .errors import RPCError

Req = TypeVar("Req")

_KEPT = (bytes, datetime, timedelta)
"""Not copied or written as text on the way."""

_HINTS = {
    "duration": "durations are timedeltas",
    "enum": "use a member of the enumeration",
    "": "pass a value of that type",
}


def checked(request: Req) -> Req:
    """The request, with names of enumerations turned into their members. Raises :class:`RPCError` that names the
    field.
    """
    try:
        return msgspec.convert(msgspec.to_builtins(request, builtin_types=_KEPT), type(request))
    except msgspec.ValidationError as error:
        field, what = explain(error, _HINTS)
    except UnicodeEncodeError:
        return request  # a lone surrogate in some text, which the engine refuses by its field's name
    except TypeError as error:
        field, what = "", f"{error}; pass a value of the documented type"
    raise RPCError(_refusal(request, field, what))


def _refusal(request: Any, field: str, what: str) -> InvalidArgument:
    name = type(request).__name__.removesuffix("Request")
    return InvalidArgument(f"{name}: {what}", field=field)
