"""Payloads that are blobs and passed through this process a short while ago: by blob, and the other way round.

The other way round goes by the object itself, which is kept as long as its entry, so that no other object can have its
id. A blob may be referred to anew if a commit of the same run refers to it already (``for_good``), or if it was put
a short while ago.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from stepwell.api.payloads import Payload

from .run_blobs import Owner, is_fresh

_MOST_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class _Seen:
    payload: Payload
    for_good: bool


class SeenPayloads:
    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._seen: OrderedDict[tuple[Owner, str], _Seen] = OrderedDict()
        self._names: dict[tuple[Owner, int], str] = {}

    def saw(self, owner: Owner, name: str, payload: Payload, *, for_good: bool) -> None:
        """The blob is there and holds this payload."""
        if self.payload(owner, name, for_good) is not None:
            return
        self._seen[owner, name] = _Seen(payload, for_good)
        self._names[owner, id(payload)] = name
        self._bytes += len(payload.data)
        while self._bytes > self._most_bytes:
            self._forget(*next(iter(self._seen)))

    def payload(self, owner: Owner, name: str, for_good: bool) -> Payload | None:
        seen = self._seen.get((owner, name))
        if seen is None:
            return None
        seen.for_good = seen.for_good or for_good
        self._seen.move_to_end((owner, name))
        return seen.payload

    def has(self, owner: Owner, name: str) -> bool:
        return (owner, name) in self._seen

    def name(self, owner: Owner, payload: Payload, now: datetime) -> str | None:
        """Of a blob of that run that holds the payload and may be referred to."""
        name = self._names.get((owner, id(payload)))
        if name is None:
            return None
        seen = self._seen[owner, name]
        self._seen.move_to_end((owner, name))
        return name if seen.for_good or is_fresh(name, now) else None

    def _forget(self, owner: Owner, name: str) -> None:
        payload = self._seen.pop((owner, name)).payload
        self._bytes -= len(payload.data)
        if self._names.get((owner, id(payload))) == name:
            del self._names[owner, id(payload)]
