"""Search attributes: typed values by which runs are found (VI-07). Part of ``stepwell.common``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Generic, TypeVar, overload

from .api.codec import decode_json, encode_json
from .api.limits import MAX_SEARCH_ATTRIBUTE_BYTES
from .api.payloads import ENCODING, ENCODING_JSON, ENCODING_NULL, Payload

T = TypeVar("T")

RESERVED_PREFIXES = ("Stepwell", "Temporal")
"""Names that begin so are the system's."""

_TYPE = "type"
_EMPTY_LIST = b"[]"
"""Says the same as None."""


class SearchAttributeIndexedValueType(Enum):
    """How a value is compared. The value is the name under which the type travels."""

    TEXT = "Text"
    KEYWORD = "Keyword"
    INT = "Int"
    DOUBLE = "Double"
    BOOL = "Bool"
    DATETIME = "Datetime"
    KEYWORD_LIST = "KeywordList"


_PYTHON_TYPES: dict[SearchAttributeIndexedValueType, Any] = {
    SearchAttributeIndexedValueType.TEXT: str,
    SearchAttributeIndexedValueType.KEYWORD: str,
    SearchAttributeIndexedValueType.INT: int,
    SearchAttributeIndexedValueType.DOUBLE: float,
    SearchAttributeIndexedValueType.BOOL: bool,
    SearchAttributeIndexedValueType.DATETIME: datetime,
    SearchAttributeIndexedValueType.KEYWORD_LIST: list[str],
}


@dataclass(frozen=True)
class SearchAttributeKey(Generic[T]):
    """Name and type; made by one of the ``for_…`` methods."""

    name: str
    indexed_value_type: SearchAttributeIndexedValueType

    @staticmethod
    def for_text(name: str) -> "SearchAttributeKey[str]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.TEXT)

    @staticmethod
    def for_keyword(name: str) -> "SearchAttributeKey[str]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.KEYWORD)

    @staticmethod
    def for_int(name: str) -> "SearchAttributeKey[int]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.INT)

    @staticmethod
    def for_float(name: str) -> "SearchAttributeKey[float]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.DOUBLE)

    @staticmethod
    def for_bool(name: str) -> "SearchAttributeKey[bool]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.BOOL)

    @staticmethod
    def for_datetime(name: str) -> "SearchAttributeKey[datetime]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.DATETIME)

    @staticmethod
    def for_keyword_list(name: str) -> "SearchAttributeKey[Sequence[str]]":
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.KEYWORD_LIST)

    def value_set(self, value: T) -> "SearchAttributeUpdate[T]":
        """Raises ``TypeError`` for a value of another type, ``ValueError`` for one that is too large."""
        return SearchAttributeUpdate(self, _checked(self, value))

    def value_unset(self) -> "SearchAttributeUpdate[T]":
        """Takes the attribute away."""
        return SearchAttributeUpdate(self, None)


@dataclass(frozen=True)
class SearchAttributePair(Generic[T]):
    """A key with its value."""

    key: SearchAttributeKey[T]
    value: T


@dataclass(frozen=True)
class SearchAttributeUpdate(Generic[T]):
    """A change of one attribute; None takes it away."""

    key: SearchAttributeKey[T]
    value: T | None

    def payload(self) -> Payload:
        """As it travels."""
        if self.value is None:
            return Payload(metadata={ENCODING: ENCODING_NULL, _TYPE: self.key.indexed_value_type.value})
        return encoded(self.key, self.value)


@dataclass(frozen=True)
class TypedSearchAttributes:
    """Attributes of one run; a mapping from key to value."""

    search_attributes: Sequence[SearchAttributePair[Any]] = ()
    _values: Mapping[SearchAttributeKey[Any], Any] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_values", {pair.key: pair.value for pair in self.search_attributes})

    def __getitem__(self, key: SearchAttributeKey[T]) -> T:
        value: T = self._values[key]
        return value

    @overload
    def get(self, key: SearchAttributeKey[T]) -> T | None: ...
    @overload
    def get(self, key: SearchAttributeKey[T], default: T) -> T: ...
    def get(self, key: SearchAttributeKey[T], default: T | None = None) -> T | None:
        value: T | None = self._values.get(key, default)
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self.search_attributes)

    def __iter__(self) -> Iterator[SearchAttributePair[Any]]:
        return iter(self.search_attributes)

    @classmethod
    def of_payloads(cls, values: Mapping[str, Payload]) -> "TypedSearchAttributes":
        """Those of a known type; what somebody else wrote without one is left out."""
        pairs = []
        for name, payload in values.items():
            try:
                kind = SearchAttributeIndexedValueType(payload.metadata.get(_TYPE, ""))
            except ValueError:
                continue
            value = decode_json(payload.data, _PYTHON_TYPES[kind])
            pairs.append(SearchAttributePair(SearchAttributeKey[Any](name, kind), value))
        return cls(pairs)


SearchAttributes = TypedSearchAttributes | Sequence[SearchAttributePair[Any] | SearchAttributeUpdate[Any]]
"""How they are said at a start: as to ``workflow.upsert_search_attributes``, or those of another run, of which the
system's own are left out.
"""


def changes_of(who: str, attributes: SearchAttributes) -> dict[str, Payload]:
    """As they travel, checked. Raises ``TypeError`` for what is none, ``ValueError`` for a name twice, or one of the
    system's own.
    """
    if isinstance(attributes, str | Mapping) or not isinstance(attributes, Iterable):
        raise TypeError(f"{who} take [key.value_set(value), …] or TypedSearchAttributes, not {attributes!r}")
    values: dict[str, Payload] = {}
    for change in attributes:
        if isinstance(change, SearchAttributePair):
            change = change.key.value_set(change.value)
        elif not isinstance(change, SearchAttributeUpdate):
            raise TypeError(f"{who} take [key.value_set(value), …] or TypedSearchAttributes, not {change!r} among them")
        name = change.key.name
        if name in values:
            raise ValueError(f"{who}: {name!r} is there twice")
        if name.startswith(RESERVED_PREFIXES):
            if isinstance(attributes, TypedSearchAttributes):
                continue
            raise ValueError(
                f"{who}: {name!r} is a name of the system's own, as all that begin with "
                f"{' or '.join(RESERVED_PREFIXES)}; choose another"
            )
        values[name] = change.payload()
    return values


def first_of(who: str, attributes: SearchAttributes | None) -> dict[str, Payload]:
    """Of a run that begins: there is nothing to take away."""
    if attributes is None:
        return {}
    values = changes_of(who, attributes)
    return {
        name: value
        for name, value in values.items()
        if value.metadata[ENCODING] != ENCODING_NULL and value.data != _EMPTY_LIST
    }


def encoded(key: SearchAttributeKey[T], value: T) -> Payload:
    """Plain JSON with the type beside it: never by the user's converter or codec, since the engine looks for it."""
    return Payload(metadata={ENCODING: ENCODING_JSON, _TYPE: key.indexed_value_type.value}, data=encode_json(value))


def _checked(key: SearchAttributeKey[T], value: T) -> T:
    kind = key.indexed_value_type
    expected = _PYTHON_TYPES[kind]
    if kind is SearchAttributeIndexedValueType.KEYWORD_LIST:
        fits = not isinstance(value, str) and isinstance(value, Sequence) and all(isinstance(v, str) for v in value)
    elif kind is SearchAttributeIndexedValueType.DOUBLE:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    elif kind is SearchAttributeIndexedValueType.INT:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(value, expected)
    if not fits:
        raise TypeError(f"search attribute {key.name!r} is of type {kind.value}, and takes no {type(value).__name__}")
    if isinstance(value, datetime) and value.utcoffset() is None:
        raise ValueError(f"search attribute {key.name!r}: {value.isoformat()} has no time zone; add one")
    size = len(encoded(key, value).data)
    if size > MAX_SEARCH_ATTRIBUTE_BYTES:
        raise ValueError(
            f"search attribute {key.name!r} has {size} bytes, the limit is {MAX_SEARCH_ATTRIBUTE_BYTES}; keep in it "
            "what is searched for"
        )
    return value
