"""Common bases of every wire record, so that encoding options are said once (msgspec does not inherit ``kw_only``).

``gc=False``: frozen records cannot form cycles, and the collector need not visit the many that are held in memory.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An immutable wire record. Unknown fields are ignored on decode, so that fields may be added."""


class Tagged(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, tag_field="type", gc=False):
    """A member of a closed union; the class name is its tag, in the field ``type``."""
