"""``parse``: a query of the filter language, checked against the attributes that there are. Raises InvalidArgument,
which names line and column, what is wrong, and the way out; nothing is read before all of it is good.

The parser's library is imported with the first query: most processes of a function never see one.
"""

from collections.abc import Mapping

from stepwell.api.errors import InvalidArgument

from .attributes import START_TIME, SYSTEM, Attribute, ValueType
from .filters import Query

FIELD = "query"
MAX_QUERY_BYTES = 16 * 1024


def parse(
    text: str,
    attributes: Mapping[str, ValueType],
    *,
    counts: bool = False,
    ordered_by: frozenset[str] = frozenset({START_TIME.name}),
    own: Mapping[str, Attribute] = SYSTEM,
) -> Query:
    """``attributes``: the custom ones that the namespace has. ``counts``: of a count, which may have GROUP BY and no
    ORDER BY; a list is the other way round. ``ordered_by``: the system's own in whose order the store has an
    index. ``own``: the system's own, by the names that the query may use."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"query contains a lone surrogate at position {error.start}, which is not text; remove it", field=FIELD
        ) from None
    if size > MAX_QUERY_BYTES:
        raise InvalidArgument(
            f"query has {size} bytes, the limit is {MAX_QUERY_BYTES}; ask for less at a time", field=FIELD
        )
    if not text.strip():
        return Query()
    from .checking import checked

    return checked(text, attributes, ordered_by, counts=counts, own=own)
