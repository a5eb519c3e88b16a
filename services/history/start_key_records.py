"""What is stored of a deduplication key (LC-48): which start has it, and for how long. Pure."""

from datetime import datetime, timedelta
from hashlib import blake2b

import msgspec
from stepwell.api.requests import Deduplication, StartWorkflowRequest

from ..common import principals

KIND = "start-key"

CLAIMED_FOR = timedelta(seconds=30)
"""Until somebody else does what a claim says, if whoever made it has not."""

_SHORTEST_LOOK, _LONGEST_LOOK = timedelta(minutes=10), timedelta(days=1)
_SLIDES_BY = 100
"""Times slide in hundredths of themselves, so that a thousand duplicates are not a thousand writes."""


class HeldKey(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Stored as it is, so new fields have defaults."""

    key: str
    workflow_id: str
    request_id: str
    """Of the start that has the key: its repeat gets its answer."""
    asked_run_id: str
    """For the run that this start makes, if it makes one."""
    start: StartWorkflowRequest | None = None
    """A claim: it is to be started, and may have been. Whoever comes next does it again, which is harmless. None: done.
    """
    before: "HeldKey | None" = None
    """Of a claim: who has the key if the start is refused, and is asked to cancel if it is not."""
    run_id: str = ""
    first_run_id: str = ""
    started: bool = True
    """What the start was answered."""
    since: datetime
    until: datetime | None = None
    """None: until the chain of runs ends."""
    wake_at: datetime
    principal: str = ""
    """Of a claim: who is known to have asked for it, whoever finishes it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HeldKey).decode


def encode(held: HeldKey) -> bytes:
    return _encode(held)


def decode(value: bytes) -> HeldKey:
    return _decode(value)


def record_id(key: str) -> str:
    """Keys may be long, and have any characters that ids may have."""
    return blake2b(key.encode(), digest_size=16).hexdigest()


def claimed(
    asked: StartWorkflowRequest, deduplication: Deduplication, run_id: str, before: HeldKey | None, now: datetime
) -> HeldKey:
    """``before``: the holder that it replaces."""
    ttl = deduplication.ttl
    return HeldKey(
        key=deduplication.key,
        workflow_id=asked.workflow_id,
        request_id=asked.request_id,
        asked_run_id=run_id,
        start=msgspec.structs.replace(asked, eager_worker=None, deduplication=None),
        before=before,
        since=now,
        until=None if ttl is None else _until(now, ttl),
        wake_at=now + CLAIMED_FOR,
        principal=principals.current(),
    )


def taken_over(claim: HeldKey, now: datetime) -> HeldKey:
    """By somebody who does what it says for whoever made it."""
    return msgspec.structs.replace(claim, wake_at=now + CLAIMED_FOR)


def done(claim: HeldKey, run_id: str, first_run_id: str, now: datetime, *, started: bool) -> HeldKey:
    return msgspec.structs.replace(
        claim,
        start=None,
        before=None,
        run_id=run_id,
        first_run_id=first_run_id,
        started=started,
        wake_at=claim.until or now + _SHORTEST_LOOK,
    )


def looked_at(held: HeldKey, now: datetime) -> HeldKey:
    """Its workflow is open: ever more seldom somebody looks whether it still is, so that what is over does not stay."""
    pause = min(max(now - held.since, _SHORTEST_LOOK), _LONGEST_LOOK)
    return msgspec.structs.replace(held, wake_at=now + pause)


def slid(held: HeldKey, deduplication: Deduplication, now: datetime) -> HeldKey | None:
    """Behind another start with the key; None: its time need not be moved."""
    ttl = deduplication.ttl
    if ttl is None or held.until is None or now + ttl <= held.until:
        return None
    until = _until(now, ttl)
    return msgspec.structs.replace(held, until=until, wake_at=until)


def _until(now: datetime, ttl: timedelta) -> datetime:
    return now + ttl + ttl / _SLIDES_BY
