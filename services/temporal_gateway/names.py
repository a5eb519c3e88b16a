"""Closed sets of names between our enums and protobuf's: ours are theirs without the prefix, so nothing is listed."""

from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from stepwell.api.errors import InvalidArgument

E = TypeVar("E", bound=StrEnum)

_numbers: dict[tuple[StrEnum, str], int] = {}
_members: dict[tuple[type[StrEnum], str], dict[int, StrEnum]] = {}
_AS_THEIRS = {"NAMESPACE_NOT_ALLOWED": "NAMESPACE_NOT_FOUND"}
"""What only we have, and their SDKs must be told of by the nearest that they know."""


def number(member: StrEnum, prefix: str, kind: Any) -> Any:
    """The value of the protobuf enum ``kind`` whose name is ``prefix`` and our member's; 0 (unspecified) for what only
    we have."""
    found = _numbers.get((member, prefix))
    if found is None:
        wrapper: EnumTypeWrapper = kind
        name = _AS_THEIRS.get(member.value, member.value)
        found = _numbers[member, prefix] = dict(wrapper.items()).get(prefix + name, 0)
    return found


def member(value: int, of: type[E], prefix: str, kind: Any, *, field: str, unspecified: E) -> E:
    """Our member for a protobuf value; ``unspecified`` for 0. Raises InvalidArgument for what only they have."""
    if not value:
        return unspecified
    table = _members.get((of, prefix))
    if table is None:
        wrapper: EnumTypeWrapper = kind
        values = {one.value for one in of}
        table = {
            number: of(name.removeprefix(prefix))
            for name, number in wrapper.items()
            if name.startswith(prefix) and name.removeprefix(prefix) in values
        }
        _members[of, prefix] = table
    found = table.get(value)
    if found is None:
        raise InvalidArgument(
            f"{field} {value} is not supported here; use one of {', '.join(one.value for one in of)}", field=field
        )
    return of(found)
