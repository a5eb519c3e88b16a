"""Common bases of every wire record, so that encoding options are said once (msgspec does not inherit ``kw_only``)."""

import msgspec


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """An immutable wire record. Unknown fields are ignored on decode, so that fields may be added."""


class Tagged(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, tag_field="type"):
    """A member of a closed union; the class name is its tag, in the field ``type``."""
