"""The registry of namespaces, on the control store, read through a cache of this process.

``get`` answers from memory and never waits, so limits, retention and attributes cost a call nothing. The cache is all
of the registry: read at the start, changed by what this process writes, and read again now and then for what others
have written (where there are others). So a change is everywhere within ``REFRESH_SECONDS``, and a registry that cannot
be read leaves what was known.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

import msgspec
from stepwell.api import requests as r
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import (
    FailedPrecondition,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    ResourceExhausted,
)
from stepwell.api.namespaces import NamespaceInfo, NamespaceLimits

from ..common.clock import Clock, IdSource
from ..common.control import ControlConflict, ControlRecord, ControlStore
from ..common.spaces import MARK, namespace_of
from . import records
from .buckets import Bucket, StartBuckets
from .records import DEFAULT, KIND, NamespaceConfig

log = logging.getLogger(__name__)

REFRESH_SECONDS = 30.0
NO_LIMITS = NamespaceLimits()
_PAGE = 500
_TRIES = 8

Change = Callable[[NamespaceConfig], NamespaceConfig]
Listener = Callable[["Namespaces"], None]


class Namespaces:
    """``store`` None: nothing can be registered, all are as by default. ``require_registered``: calls in a namespace
    that is not registered are refused; else it is there with its first call."""

    def __init__(
        self, store: ControlStore | None, clock: Clock, ids: IdSource, *, require_registered: bool = False
    ) -> None:
        self.clock = clock
        self.require_registered = require_registered
        self.can_archive = False
        """Whether there is a place for archives."""
        self._store = store
        self._ids = ids
        self._known: dict[str, NamespaceConfig] = {}
        self._starts = StartBuckets()
        self._changes = 0
        """How often this process has written."""
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._listeners: list[Listener] = []

    # --- from memory ---

    def get(self, namespace: str) -> NamespaceConfig:
        """What is known of it; that of an unregistered one when nothing is."""
        name = namespace_of(namespace)
        return self._known.get(name) or NamespaceConfig(name=name)

    def limits(self, namespace: str) -> NamespaceLimits:
        """What it may ask for; made anew for nobody."""
        known = self._known.get(namespace_of(namespace) if MARK in namespace else namespace)
        return NO_LIMITS if known is None else known.limits

    def starts(self, namespace: str) -> Bucket | None:
        """What its starts are taken from; None where they have no limit."""
        return self._starts.of(namespace, self.limits(namespace).starts_per_second, self.clock.monotonic())

    def retention(self, namespace: str) -> timedelta:
        """How long it keeps what has ended."""
        return self.get(namespace).retention

    def is_registered(self, namespace: str) -> bool:
        return namespace == DEFAULT or self.get(namespace).registered

    @property
    def known(self) -> Mapping[str, NamespaceConfig]:
        """All that have a record, by name."""
        return self._known

    def on_change(self, listener: Listener) -> None:
        """``listener`` is called now, and whenever something has changed."""
        self._listeners.append(listener)
        listener(self)

    @property
    def keeps_records(self) -> bool:
        """Whether anything can be registered."""
        return self._store is not None

    # --- the cache ---

    async def reread(self, namespace: str) -> NamespaceConfig:
        """What is known of it now, also to other processes; remembered. Raises StoreUnavailable."""
        if self._store is None:
            return self.get(namespace)
        changes, record = self._changes, await self._store.get(KIND, "", namespace)
        if record is None or changes != self._changes:
            return self.get(namespace)  # this process has written meanwhile, and knows what
        return self._knows(records.decode(record.value))

    async def load(self) -> None:
        """Raises StoreUnavailable."""
        if self._store is None:
            return
        changes = -1
        known: dict[str, NamespaceConfig] = {}
        while changes != self._changes:  # else what this process wrote meanwhile would be forgotten
            changes = self._changes
            known = await self._read_all(self._store)
        self._read_at = self.clock.monotonic()
        if known != self._known:
            self._known = known
            self._tell()

    async def _read_all(self, store: ControlStore) -> dict[str, NamespaceConfig]:
        known: dict[str, NamespaceConfig] = {}
        after = ""
        while True:
            page = await store.list(KIND, "", after=after, limit=_PAGE)
            known |= {record.id: records.decode(record.value) for record in page}
            if len(page) < _PAGE:
                return known
            after = page[-1].id

    async def freshen(self) -> None:
        """Reads again what is older than ``REFRESH_SECONDS``; for a process that stands still between calls."""
        if self._read_at is None or self.clock.monotonic() - self._read_at >= REFRESH_SECONDS:
            await self._try_load()

    def start(self) -> None:
        """Reads again every ``REFRESH_SECONDS``, until ``stop``."""
        if self._store is not None:
            self._reading = asyncio.create_task(self._keep_reading(), name="namespaces")

    async def stop(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])

    async def _keep_reading(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self._try_load()

    async def _try_load(self) -> None:
        try:
            await self.load()
        except Exception as error:
            self._read_at = self.clock.monotonic()
            log.warning("The registry of namespaces cannot be read; what was known goes on", exc_info=error)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener(self)

    # --- operations ---

    async def register(self, request: r.RegisterNamespaceRequest) -> r.RegisterNamespaceResponse:
        new_id = self._ids.run_id()
        self._check_archival(request.archival)

        def change(there: NamespaceConfig) -> NamespaceConfig:
            if there.state is NamespaceState.DELETED:
                raise NamespaceAlreadyExists(
                    f"namespace {request.namespace!r} is being deleted, and its name is free when all that was in it "
                    "is gone; try again later, or choose another name"
                )
            if there.registered:
                if request.request_id and there.request_id == request.request_id:
                    return there
                raise NamespaceAlreadyExists(
                    f"namespace {request.namespace!r} is registered already; update it, or choose another name"
                )
            return records.registered(request, there, new_id, self.clock.now())

        return r.RegisterNamespaceResponse(id=(await self._change(request.namespace, change)).id)

    async def describe(self, request: r.DescribeNamespaceRequest) -> r.DescribeNamespaceResponse:
        """Of a deleted one only while there is something in it that cannot be deleted, so that somebody sees it."""
        record = await self._record(request.namespace)
        if record is not None and (info := records.info_of(records.decode(record.value))).unremoved:
            return r.DescribeNamespaceResponse(info=info)
        config = self._there(request.namespace, record)
        return r.DescribeNamespaceResponse(info=records.info_of(config))

    async def update(self, request: r.UpdateNamespaceRequest) -> r.UpdateNamespaceResponse:
        self._check_archival(request.archival)
        config = await self._change(request.namespace, lambda there: records.updated(request, self._must_be(there)))
        return r.UpdateNamespaceResponse(info=records.info_of(config))

    async def deprecate(self, request: r.DeprecateNamespaceRequest) -> r.DeprecateNamespaceResponse:
        await self._change(request.namespace, lambda there: records.deprecated(self._must_be(there)))
        return r.DeprecateNamespaceResponse()

    async def delete(
        self, request: r.DeleteNamespaceRequest, is_used: Callable[[str], Awaitable[bool]]
    ) -> r.DeleteNamespaceResponse:
        """Hides it at once and leaves the rest to ``removal``. ``is_used``: whether workflows run in it. Again is
        harmless, and has what could not be deleted tried at once."""
        name = request.namespace
        used = not request.force and await is_used(name)
        delete_after = self.clock.now() + (request.delay or timedelta(0))

        def change(there: NamespaceConfig) -> NamespaceConfig:
            if there.state is NamespaceState.DELETED:
                return records.tried_again(there, delete_after)
            return records.deleted(self._must_be(there), force=request.force, is_used=used, delete_after=delete_after)

        config = await self._change(name, change, arm=delete_after)
        return r.DeleteNamespaceResponse(delete_after=config.delete_after)

    async def list(self, after: str, limit: int) -> "list[NamespaceInfo]":
        """In the order of names (by their UTF-8 bytes), without those that are being deleted."""
        found: list[NamespaceConfig] = []
        behind = after
        while len(found) < limit and self._store is not None:
            page = await self._store.list(KIND, "", after=behind, limit=limit)
            configs = [records.decode(record.value) for record in page]
            found += [config for config in configs if config.state is not NamespaceState.DELETED]
            if len(page) < limit:
                break
            behind = page[-1].id
        if after.encode() < DEFAULT.encode() and all(config.name != DEFAULT for config in found):
            found.append(NamespaceConfig(name=DEFAULT))
            found.sort(key=lambda config: config.name.encode())
        return [records.info_of(config) for config in found[:limit]]

    async def add_search_attributes(self, namespace: str, types: Mapping[str, str]) -> NamespaceConfig:
        """Registers attributes that are new, by their type; nothing is written when all are there. Raises
        InvalidArgument when one has another type or there would be too many, and StoreUnavailable."""

        def change(there: NamespaceConfig) -> NamespaceConfig:
            together = records.with_attributes(there, types)
            return there if together == there.search_attributes else _replaced(there, search_attributes=together)

        known = self.get(namespace)
        if change(known) is known:
            return known
        return await self._change(namespace, change)

    # --- writing ---

    async def _change(self, namespace: str, change: Change, *, arm: datetime | None = None) -> NamespaceConfig:
        """Reads, changes and puts under the condition that nobody else has, again if somebody has."""
        store = self._must_have_store()
        for _ in range(_TRIES):
            record = await store.get(KIND, "", namespace)
            there = NamespaceConfig(name=namespace) if record is None else records.decode(record.value)
            config = change(there)
            if not config.id:
                config = _replaced(config, id=self._ids.run_id(), created_at=self.clock.now())
            if config == there:
                return self._knows(config)
            known = record or ControlRecord(KIND, "", namespace, version=0, value=b"")
            try:
                await store.put(known._replace(version=known.version + 1, value=records.encode(config)), arm=arm)
            except ControlConflict:
                continue
            return self._knows(config)
        raise ResourceExhausted(
            f"namespace {namespace!r} was changed by others {_TRIES} times in a row; try again in a moment",
            cause="NAMESPACE_CHANGES_LIMIT",
            scope="NAMESPACE",
        )

    def forget(self, gone: NamespaceConfig) -> None:
        """Its record is gone. One that was registered under its name since stays."""
        self._changes += 1
        if self.get(gone.name).id == gone.id:
            self._known = {name: config for name, config in self._known.items() if name != gone.name}
            self._tell()

    def _knows(self, config: NamespaceConfig) -> NamespaceConfig:
        self._changes += 1
        if self._known.get(config.name) != config:
            self._known = {**self._known, config.name: config}
            self._tell()
        return config

    async def _record(self, namespace: str) -> ControlRecord | None:
        return None if self._store is None else await self._store.get(KIND, "", namespace)

    def _there(self, namespace: str, record: ControlRecord | None) -> NamespaceConfig:
        if record is None:
            return self._must_be(NamespaceConfig(name=namespace))
        return self._must_be(records.decode(record.value))

    def _must_be(self, config: NamespaceConfig) -> NamespaceConfig:
        """Raises NamespaceNotFound for one of which nothing is known, or nothing any more."""
        if config.state is NamespaceState.DELETED:
            raise NamespaceNotFound(f"namespace {config.name!r} is deleted, and what was in it goes in the background")
        if config.id or config.name == DEFAULT:
            return config
        raise NamespaceNotFound(f"namespace {config.name!r} is not registered; register it, or check the name")

    def _check_archival(self, archival: bool | None) -> None:
        if archival and not self.can_archive:
            raise FailedPrecondition(
                "archival cannot be switched on: this installation has no place for archives; name a bucket "
                "(STEPWELL_BUCKET), or leave it off"
            )

    def _must_have_store(self) -> ControlStore:
        if self._store is None:
            raise FailedPrecondition("this engine keeps no registry of namespaces")
        return self._store


def _replaced(config: NamespaceConfig, **changes: object) -> NamespaceConfig:
    return msgspec.structs.replace(config, **changes)
