"""The control store: small records of an installation by kind, namespace and id, and wake-ups armed with them.

A record has a version, which each write raises by one, on condition that nobody else has: so whatever works on one in
steps (a schedule, a batch, the removal of a namespace) may die between any two of them, and two that work at once
notice each other. Versions begin again at 1 when a record is deleted and made anew, so it also has an **incarnation**,
drawn with version 1 and part of every condition: who stood still meanwhile changes nothing of the new one (ADR 0010).

A **wake-up** is a row of the same index as the deadlines of workflows, under a workflow id that no user's can be. It is
armed before the write that needs it, and it is done only when its handler has returned, which has armed the next one by
then. So no queue that is lost loses it; it may come twice, late, or for what is gone.
"""

from datetime import datetime
from typing import NamedTuple, Protocol

MAX_VALUE_BYTES = 380_000
"""Of one record: what an item of DynamoDB holds, less its keys."""

MARK = "\x01"
"""Begins the workflow id of a wake-up; ids with control characters are refused (DA-11)."""


class ControlRecord(NamedTuple):
    kind: str
    """Without ``/`` and ``#``."""
    namespace: str
    """Empty for what belongs to none."""
    id: str
    version: int
    """From 1 on."""
    value: bytes
    incarnation: str = ""
    """Drawn by the store with version 1 and kept by all later ones. Empty: made by a release before there were any."""


class ControlConflict(Exception):
    """Nothing was written: the record is not as the caller knows it. ``existing`` is what is there; it may be another
    one under the same id (``is_another``)."""

    def __init__(self, existing: ControlRecord | None) -> None:
        what = "it is gone" if existing is None else f"it is at version {existing.version}"
        super().__init__(f"the record was changed meanwhile ({what}); read it again")
        self.existing = existing


class ControlTooLarge(Exception):
    """Nothing was written. No retry helps."""

    def __init__(self, record: ControlRecord) -> None:
        super().__init__(
            f"{record.kind} {record.id!r} would have {len(record.value)} bytes, above the limit of {MAX_VALUE_BYTES}"
        )


class ControlStore(Protocol):
    """Every write is durable when its call returns. All raise StoreUnavailable; a write that does may have been made or
    may still be: read again."""

    async def get(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        """A strong read."""
        ...

    async def put(self, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        """The record as it is stored now. Conditional on the stored one being of this incarnation and of version
        ``record.version - 1``; version 1 on there being none, and it gets an incarnation of its own. Arms the wake-up
        of the record first when ``arm`` is set; who fires it sees this write, or knows that it may still come. Raises
        ControlConflict, ControlTooLarge."""
        ...

    async def delete(self, record: ControlRecord) -> None:
        """Conditional on the stored one being of this incarnation and version. What is gone already is deleted, also
        when another one has been made since, which stays. Its wake-ups stay and find nothing. Raises
        ControlConflict."""
        ...

    async def list(self, kind: str, namespace: str, *, after: str = "", limit: int) -> list[ControlRecord]:
        """Behind ``after``, in the order of ids (by their UTF-8 bytes)."""
        ...


def check_size(record: ControlRecord) -> None:
    """Raises ControlTooLarge."""
    if len(record.value) > MAX_VALUE_BYTES:
        raise ControlTooLarge(record)


def is_another(existing: ControlRecord, known: ControlRecord) -> bool:
    """Whether ``existing`` was made under the id after ``known`` was deleted. Not so when it lacks an incarnation: then
    a process of an earlier release, which keeps none, may have written ``known``."""
    return existing.incarnation not in ("", known.incarnation)


def wake_up_id(kind: str, id: str) -> str:
    """The workflow id under which the wake-ups of a record are armed."""
    return f"{MARK}{kind}/{id}"


def is_wake_up(workflow_id: str) -> bool:
    return workflow_id.startswith(MARK)


def parse_wake_up(workflow_id: str) -> tuple[str, str]:
    """Kind and id."""
    kind, _, id = workflow_id[len(MARK) :].partition("/")
    return kind, id


class Woken(Protocol):
    """What is to be done for a record when a wake-up of it is due: at least once, perhaps late, and perhaps for nothing
    (it was armed for a write that never came, or for another record of the same id): what there is to do, the record
    alone says. It arms the next one before it returns; what it raises leaves the wake-up to be fired again."""

    async def __call__(self, namespace: str, id: str, due_at: datetime) -> None: ...


class UnknownWakeUp(Exception):
    """This process has no handler for the kind, such as one of an earlier release beside a later one. The wake-up stays
    armed."""


class ControlWakeUps:
    """The handlers of one process, by kind of record; they are called by whoever fires deadlines."""

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self._handlers: dict[str, Woken] = {}
        self._beside: list[str] = []

    def register(self, kind: str, handler: Woken, *, beside: tuple[str, ...] = ()) -> None:
        """``beside``: kinds of records that are kept for those of ``kind``, and are never woken."""
        if kind in self._handlers:
            raise ValueError(f"wake-ups of {kind!r} have a handler already")
        self._handlers[kind] = handler
        self._beside += beside

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of records that have handlers here, then of those beside them."""
        return (*self._handlers, *self._beside)

    async def fire(
        self, namespace: str, workflow_id: str, due_at: datetime, version: int = 0, incarnation: str = ""
    ) -> bool:
        """Whether the wake-up is done. False: the write for which it was armed, that of ``version``, is not there;
        while it may still come, fire again. Raises what the handler raises, and UnknownWakeUp.

        The handler is called all the same when there is a record: a wake-up of it for the same instant may have stood
        where this one stands now, and been replaced by it."""
        kind, id = parse_wake_up(workflow_id)
        landed = True
        if version:
            found = await self._store.get(kind, namespace, id)
            if found is None:
                return False
            landed = found.version >= version and incarnation in ("", found.incarnation)
        handler = self._handlers.get(kind)
        if handler is None:
            raise UnknownWakeUp(f"this process does not know what a wake-up of {kind!r} ({id!r}) is for")
        await handler(namespace, id, due_at)
        return landed
