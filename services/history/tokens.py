"""Signed tokens: what the engine hands to callers and believes when it comes back.

A token is one kind byte, a msgpack array and a keyed blake2b over both. Callers cannot read more out of it than they
were told, and cannot make one; after a restart with the same key all tokens stay good.
"""

import hashlib
from datetime import datetime
from typing import TypeVar

import msgspec
from stepwell.api.errors import InvalidArgument, NotFound

from ..common.spaces import namespace_of
from .task_tokens import ActivityToken, ContinuationToken, WorkflowTaskToken

_MAC_BYTES = 16

_KEPT_TOKENS = 4_096
"""Tokens of which the meaning is remembered, about 2 MB; any other is checked and decoded."""


class QueryToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Names a query that waits in this process for its answer."""

    namespace: str
    workflow_id: str
    run_id: str
    query_id: str


class HistoryToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the next page of a history begins."""

    namespace: str
    workflow_id: str
    run_id: str
    after_seq: int
    """Commits up to this seq were read in full."""
    skip: int = 0
    """Events behind ``after_seq`` that were delivered already."""


class BackwardsToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the next page of a history begins that is read newest first."""

    namespace: str
    workflow_id: str
    run_id: str
    seq: int
    skip: int = 0
    """Newest events of that commit, or part of a prefix, that were delivered already."""


class ListToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the next page of a list begins."""

    namespace: str
    start_time: datetime
    run_id: str
    value: int | float | str | bool | None = None
    """Of the attribute that orders; a time is in microseconds since 1970."""
    query: bytes = b""
    """Hash of what is asked, since the place means nothing in another list."""
    timed: bool = False
    """``value`` is a time."""


class ArchiveToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the next page of an archived history begins."""

    namespace: str
    workflow_id: str
    run_id: str
    part: int
    skip: int
    """Events of that part that were delivered already; the newest ones when it is read newest first."""
    parts: int
    reverse: bool = False


class ArchivedListToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the next page of a list of archived runs begins."""

    namespace: str
    after: str
    query: bytes


Token = (
    WorkflowTaskToken
    | ContinuationToken
    | ActivityToken
    | QueryToken
    | HistoryToken
    | BackwardsToken
    | ListToken
    | ArchiveToken
    | ArchivedListToken
)
TokenT = TypeVar(
    "TokenT",
    WorkflowTaskToken,
    ContinuationToken,
    ActivityToken,
    QueryToken,
    HistoryToken,
    BackwardsToken,
    ListToken,
    ArchiveToken,
    ArchivedListToken,
)

_KINDS: dict[type[Token], bytes] = {
    WorkflowTaskToken: b"W",
    ContinuationToken: b"C",
    ActivityToken: b"A",
    QueryToken: b"Q",
    HistoryToken: b"H",
    BackwardsToken: b"B",
    ListToken: b"L",
    ArchiveToken: b"V",
    ArchivedListToken: b"I",
}
_DECODERS: dict[int, msgspec.msgpack.Decoder[Token]] = {
    kind[0]: msgspec.msgpack.Decoder(type=token_type) for token_type, kind in _KINDS.items()
}


class TokenSigner:
    """Makes and opens tokens. ``key`` is 16 to 64 secret bytes, kept with the store."""

    def __init__(self, key: bytes) -> None:
        if not 16 <= len(key) <= 64:
            raise ValueError(f"token_key must have 16 to 64 bytes, not {len(key)}")
        self._blank = hashlib.blake2b(key=key, digest_size=_MAC_BYTES)
        self._encode = msgspec.msgpack.Encoder().encode
        self._made: dict[bytes, Token] = {}
        """What was sealed last: most tokens come back within moments, and equal bytes mean the same."""

    def seal(self, token: Token) -> bytes:
        body = _KINDS[type(token)] + self._encode(token)
        mac = self._blank.copy()  # what ``_mac`` does, without its call: each step seals two
        mac.update(body)
        sealed = body + mac.digest()
        if len(self._made) >= _KEPT_TOKENS:
            self._made.clear()
        self._made[sealed] = token
        return sealed

    def open(self, data: bytes, field: str) -> Token:
        """The token in ``data``. Raises InvalidArgument, naming ``field``, for anything this engine did not make."""
        made = self._made.get(data)
        if made is not None:
            return made
        body = data[:-_MAC_BYTES]
        decoder = _DECODERS.get(body[0]) if body else None
        if decoder is None or self._mac(body) != data[-_MAC_BYTES:]:
            raise InvalidArgument(
                f"{field} is not a token of this engine; send back unchanged what the engine gave", field=field
            )
        return decoder.decode(memoryview(body)[1:])

    def open_as(self, data: bytes, of: type[TokenT], namespace: str, field: str) -> TokenT:
        """Like ``open``; also refuses other kinds, and tokens of another namespace as if they named nothing."""
        token = self.open(data, field)
        if not isinstance(token, of):
            raise InvalidArgument(
                f"{field} is a token for something else; send back the one that came with the answer in question",
                field=field,
            )
        if token.namespace != namespace != namespace_of(token.namespace):
            raise NotFound(f"{field} names nothing in namespace {namespace!r}")
        return token

    def _mac(self, body: bytes) -> bytes:
        mac = self._blank.copy()
        mac.update(body)
        return mac.digest()
