"""Parts of items that are too large for DynamoDB, as blobs: what is left when large payloads are blobs already.

An item takes 400 KB. First its events part goes (``er`` instead of ``e``), then the head of a commit (``hr`` instead of
``h``): the attribute names a blob of the run that the item is of. So no commit exceeds the limit, whatever it says.
"""

import asyncio

from ...common.blobs import BlobMissing
from ...common.clock import Clock
from ...history.commit import ExecutionKey
from ...history.run_blobs import PUT_LATE, PUT_SOON, Owner, PayloadLost, RunBlobs
from .attributes import Attributes, Item, size, value
from .commit_items import MAX_ITEM_BYTES

PARTS = {"e": "er", "h": "hr"}
"""The attribute of a part, and that of its blob's name; in the order in which they go."""

_WORTH = 1_024
"""A part that is smaller makes no difference."""


def names_in(item: Item) -> set[str]:
    return {item[name] for name in PARTS.values() if name in item}


class LargeParts:
    def __init__(self, blobs: RunBlobs) -> None:
        self._blobs = blobs

    async def small(self, attributes: Attributes, owner: Owner, *, of_prefix: bool = False) -> Attributes:
        """The item with as many parts as blobs as it takes. Raises StoreUnavailable."""
        for part, name in PARTS.items():
            if size(attributes) <= MAX_ITEM_BYTES:
                break
            data: bytes = attributes.get(part, {}).get("B", b"")
            if len(data) < _WORTH:
                continue
            form = self._blobs.form(owner, data)
            blob = self._blobs.name(form, of_prefix=of_prefix)
            await self._blobs.put(owner, blob, form)
            attributes = {key: given for key, given in attributes.items() if key != part} | {name: value(blob)}
        return attributes

    async def again(self, whole: Attributes, small: Attributes, owner: Owner) -> None:
        """Puts the blobs of ``small`` under the names that they have, in case that they are gone."""
        for part, name in PARTS.items():
            if name in small:
                await self._blobs.put(owner, small[name]["S"], self._blobs.form(owner, whole[part]["B"]))

    async def whole(self, item: Item, key: ExecutionKey, run_id: str = "") -> Item:
        """The item with its parts in place. ``run_id``: of an item that does not say it itself. Raises PayloadLost,
        UnreadableRecord, StoreUnavailable."""
        wanted = {part: item[name] for part, name in PARTS.items() if name in item}
        if not wanted:
            return item
        owner = Owner(key, run_id or item["run"])
        parts = await asyncio.gather(*(self._get(owner, blob) for blob in wanted.values()))
        return {**item, **dict(zip(wanted, parts, strict=True))}

    async def _get(self, owner: Owner, blob: str) -> bytes:
        try:
            return await self._blobs.get(owner, blob)
        except BlobMissing as missing:
            raise PayloadLost(owner, missing.key) from missing


class PartBlobs:
    """Those of one commit that is written."""

    def __init__(self, parts: LargeParts, owner: Owner, clock: Clock) -> None:
        self._parts = parts
        self._owner = owner
        self._clock = clock
        self._began = clock.now()
        self._whole: Attributes = {}
        self._small: Attributes = {}

    async def small(self, attributes: Attributes) -> Attributes:
        self._whole = attributes
        while True:
            self._began = self._clock.now()
            self._small = await self._parts.small(attributes, self._owner)
            if self._clock.now() - self._began <= PUT_SOON:
                return self._small

    async def landed(self) -> None:
        """The item was written. If that took so long that the blobs may be taken for garbage, puts them again."""
        if self._small is not self._whole and self._clock.now() - self._began > PUT_LATE:
            await self._parts.again(self._whole, self._small, self._owner)
