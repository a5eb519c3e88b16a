"""Stored form of commits and activity items: msgpack, compressed against a small committed dictionary. Pure.

A commit is stored as two parts. The *events* part is what a history reader wants; the *head* part is everything else,
above all the state. So reading a history decodes no states, and whichever part a reader asks for is one short buffer.

Each part starts with one format byte. A new way of storing (another dictionary, another compressor) takes a new byte
and leaves the old ones readable for ever; a byte of a later release is refused by name. Fields that a later release
added are ignored, which msgspec does by itself.
"""

import threading
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple, TypeVar

import msgspec
import zstandard
from stepwell.api.common import Memo
from stepwell.api.events import HistoryEvent

from .activity_item import ActivityItem
from .commit import ClosedRun, Commit, EncodedCommit, RejectedUpdate
from .state import ExecutionState
from .tasks import Task

T = TypeVar("T")

FORMAT_PLAIN = 0
"""The rest is msgpack. For what compression would only make longer."""

FORMAT_ZSTD_1 = 1
"""The rest is one zstd frame without magic and dictionary id, made with ``dictionary_1.zdict``."""

FORMAT_TWO_RUNS = 2
"""An events part of a commit of two runs: four bytes with the length of the first of the two parts that follow, which
are the events of the run that it closed, and those of the run that it opened."""

_COMPRESSION_LEVEL = 1
_DICTIONARY_1 = zstandard.ZstdCompressionDict(files(__package__).joinpath("dictionary_1.zdict").read_bytes())
_DICTIONARY_1.precompute_compress(level=_COMPRESSION_LEVEL)


class UnreadableRecord(Exception):
    """Stored bytes that this release cannot read: of a later format, or damaged. Nothing was changed."""


class StoredCommit(NamedTuple):
    """``events`` is empty when the commit numbered none."""

    head: bytes
    events: bytes


class _Head(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A commit less its events and less what its state says as well (namespace, ids, seq)."""

    kind: str
    base: int = 0
    time: datetime
    nonce: str
    state: ExecutionState
    tasks: tuple[Task, ...] = ()
    deadline: datetime | None = None
    owes: bool | None = None
    expires_at: datetime | None = None
    closed: ExecutionState | None = None
    rejected: tuple[RejectedUpdate, ...] = ()


class _VisibleAttributes(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    memo: Memo = {}
    search_attributes: Memo = {}


class _Compression(threading.local):
    """zstd contexts are not to be shared between threads; each thread makes its own, once."""

    def __init__(self) -> None:
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _COMPRESSION_LEVEL,
            format=zstandard.FORMAT_ZSTD1_MAGICLESS,
            write_dict_id=False,
            write_checksum=True,
            write_content_size=True,
        )
        self.compress = zstandard.ZstdCompressor(dict_data=_DICTIONARY_1, compression_params=parameters).compress
        self.decompress = zstandard.ZstdDecompressor(
            dict_data=_DICTIONARY_1, format=zstandard.FORMAT_ZSTD1_MAGICLESS
        ).decompress


_compression = _Compression()
_encoder = msgspec.msgpack.Encoder()
_head_decoder = msgspec.msgpack.Decoder(_Head)
_events_decoder = msgspec.msgpack.Decoder(tuple[HistoryEvent, ...])
_item_decoder = msgspec.msgpack.Decoder(ActivityItem)
_attributes_decoder = msgspec.msgpack.Decoder(_VisibleAttributes)


def pack(data: bytes) -> bytes:
    """``data`` behind its format byte, compressed where that makes it shorter."""
    compressed = _compression.compress(data)
    if len(compressed) < len(data):
        return b"\x01" + compressed
    return b"\x00" + data


def unpack(part: bytes) -> bytes:
    """Reverse of :func:`pack`. Raises :class:`UnreadableRecord`."""
    stored_format = part[0] if part else -1
    if stored_format == FORMAT_ZSTD_1:
        try:
            return _compression.decompress(part[1:])
        except zstandard.ZstdError as error:
            raise UnreadableRecord(f"a stored record is damaged: {error}") from error
    if stored_format == FORMAT_PLAIN:
        return part[1:]
    raise UnreadableRecord(
        f"a stored record has format {stored_format}, this release reads formats 0 to 2; open it with a newer release"
    )


class _Parts(msgspec.Struct, frozen=True, gc=False):
    """A commit's parts before compression; ``None`` for those that it has not got."""

    head: bytes
    events: bytes | None
    closed_events: bytes | None


def encode_commit(commit: Commit) -> StoredCommit:
    """The stored form. Raises as :func:`encode_sized_commit`."""
    head, events, _ = encode_sized_commit(commit)
    return StoredCommit(head, events)


def encode_sized_commit(commit: Commit) -> tuple[bytes, bytes, int]:
    """The stored head and events, and the bytes of the head before compression: nearly all of it is the state.

    Raises ``ValueError`` when the commit and its state name different workflows, runs or seqs.
    """
    if type(commit) is EncodedCommit:
        return commit.stored_head, commit.stored_events, commit.state_bytes
    parts = _parts(commit)
    return pack(parts.head), _stored_events(parts), len(parts.head)


def encode_searched_commit(commit: Commit, mark: bytes) -> tuple[StoredCommit, int, bool]:
    """The stored form, its head's bytes before compression, and whether these bytes are somewhere in the parts."""
    parts = _parts(commit)
    marked = any(part is not None and mark in part for part in (parts.head, parts.events, parts.closed_events))
    return StoredCommit(pack(parts.head), _stored_events(parts)), len(parts.head), marked


def _parts(commit: Commit) -> _Parts:
    state, closed = commit.state, commit.closed
    if state.run_id != commit.run_id or not _fits(commit, state):
        raise _carries(commit, state)
    if closed is not None and (closed.run_id == commit.run_id or not _fits(commit, closed.state)):
        raise _carries(commit, closed.state)
    head = _Head(
        kind=commit.kind,
        base=commit.base,
        time=commit.time,
        nonce=commit.nonce,
        state=state,
        tasks=commit.tasks,
        deadline=commit.deadline,
        owes=commit.owes,
        expires_at=commit.expires_at,
        closed=closed.state if closed is not None else None,
        rejected=commit.rejected,
    )
    return _Parts(
        _encoder.encode(head),
        _encoder.encode(commit.events) if commit.events else None,
        _encoder.encode(closed.events) if closed is not None else None,
    )


def _stored_events(parts: _Parts) -> bytes:
    events = pack(parts.events) if parts.events is not None else b""
    if parts.closed_events is not None:
        before = pack(parts.closed_events)
        events = b"\x02" + len(before).to_bytes(4) + before + events
    return events


def _fits(commit: Commit, state: ExecutionState) -> bool:
    return (state.seq, state.workflow_id, state.namespace) == (commit.seq, commit.workflow_id, commit.namespace)


def _carries(commit: Commit, state: ExecutionState) -> ValueError:
    return ValueError(
        f"commit {commit.seq} of run {commit.run_id!r} carries the state of "
        f"commit {state.seq} of run {state.run_id!r} ({state.namespace}/{state.workflow_id})"
    )


def encode_events(events: Sequence[HistoryEvent]) -> bytes:
    """Events alone, as the events part of a commit has them."""
    return pack(_encoder.encode(tuple(events)))


def decode_commit(head: bytes, events: bytes) -> Commit:
    """The commit as it was encoded. Raises :class:`UnreadableRecord`."""
    stored = _decode(head, _head_decoder)
    state = stored.state
    return Commit(
        namespace=state.namespace,
        workflow_id=state.workflow_id,
        seq=state.seq,
        run_id=state.run_id,
        kind=stored.kind,
        base=stored.base,
        time=stored.time,
        nonce=stored.nonce,
        events=decode_events(events),
        state=state,
        tasks=stored.tasks,
        deadline=stored.deadline,
        owes=stored.owes,
        expires_at=stored.expires_at,
        closed=(
            ClosedRun(state=stored.closed, events=decode_closed_events(events)) if stored.closed is not None else None
        ),
        rejected=stored.rejected,
    )


def decode_events(events: bytes) -> tuple[HistoryEvent, ...]:
    """The events part alone; of a commit of two runs, what it numbered in the run that it opened. Raises
    :class:`UnreadableRecord`."""
    if events and events[0] == FORMAT_TWO_RUNS:
        events = events[_closed_end(events) :]
    return _decode(events, _events_decoder) if events else ()


def decode_closed_events(events: bytes) -> tuple[HistoryEvent, ...]:
    """From the events part, what the commit numbered in the run that it closed while it opened another; empty when it
    did not. Raises :class:`UnreadableRecord`."""
    if not events or events[0] != FORMAT_TWO_RUNS:
        return ()
    return _decode(events[5 : _closed_end(events)], _events_decoder)


def _closed_end(events: bytes) -> int:
    end = 5 + int.from_bytes(events[1:5])
    if len(events) < end:
        raise UnreadableRecord(f"a stored record is damaged: it has {len(events)} bytes and should have {end} or more")
    return end


def encode_activity_item(item: ActivityItem) -> bytes:
    return pack(_encoder.encode(item))


def decode_activity_item(part: bytes) -> ActivityItem:
    """Raises :class:`UnreadableRecord`."""
    return _decode(part, _item_decoder)


def encode_visible_attributes(memo: Memo, search_attributes: Memo) -> bytes | None:
    """What a list shows besides columns; None when there is nothing."""
    if not memo and not search_attributes:
        return None
    return pack(_encoder.encode(_VisibleAttributes(memo=memo, search_attributes=search_attributes)))


def decode_visible_attributes(part: bytes | None) -> tuple[Memo, Memo]:
    """Memo and search attributes. Raises :class:`UnreadableRecord`."""
    if part is None:
        return {}, {}
    attributes = _decode(part, _attributes_decoder)
    return attributes.memo, attributes.search_attributes


def _decode(part: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    try:
        return decoder.decode(unpack(part))
    except msgspec.DecodeError as error:
        raise UnreadableRecord(f"a stored record does not fit this release: {error}") from error
