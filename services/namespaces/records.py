"""What the registry stores of a namespace, and how a change comes about. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from stepwell.api import requests as r
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import FailedPrecondition, InvalidArgument, NamespaceNotFound
from stepwell.api.limits import DEFAULT_RETENTION, MAX_NAMESPACE_NOTES, MAX_SEARCH_ATTRIBUTES
from stepwell.api.namespaces import NamespaceInfo, NamespaceLimits, RemovalFailure

KIND = "namespace"
"""Of its record in the control store."""

DEFAULT = "default"
"""Always there, and cannot be let go."""


class Removal(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How far the removal of a deleted namespace is: it goes through the list of its workflows, again and again until
    nothing is found."""

    token: bytes = b""
    """Of the list, where to go on."""
    removed: int = 0
    failed: int = 0
    """In this round so far: what was deleted, and what could not be."""
    failures: tuple[RemovalFailure, ...] = ()
    idle: int = 0
    """Rounds in a row in which all that was found could not be deleted."""
    left: int = 0
    left_failures: tuple[RemovalFailure, ...] = ()
    """What could not be deleted in the round before."""
    alone: bool = False
    """Whether the round is past the workflows, at the activities without one."""


class NamespaceConfig(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """By default that of a namespace that nobody registered. Stored as it is, so new fields have defaults."""

    name: str
    id: str = ""
    state: NamespaceState = NamespaceState.REGISTERED
    description: str = ""
    owner_email: str = ""
    data: Mapping[str, str] = {}
    retention: timedelta = DEFAULT_RETENTION
    limits: NamespaceLimits = NamespaceLimits()
    search_attributes: Mapping[str, str] = {}
    implicit_search_attributes: bool = True
    created_at: datetime | None = None
    request_id: str = ""
    """Of the registration, so that a repeat gets the same answer."""
    registered: bool = False
    """False: it is there because it is used; the record is for its search attributes."""

    archival: bool = False
    archived: bool = False
    """Runs of it may be in the archive: it was archived once."""

    delete_after: datetime | None = None
    """Of a deleted one: when to begin."""
    empty_since: datetime | None = None
    """Of a deleted one: when nothing was found in it any more."""
    removal: Removal = Removal()
    """Of a deleted one."""
    callers_allowed: tuple[str, ...] = ()
    removed_attributes: tuple[str, ...] = ()
    """Which runs still have, newest last: nobody is to search for them until they are registered again."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(NamespaceConfig).decode


def encode(config: NamespaceConfig) -> bytes:
    return _encode(config)


def decode(value: bytes) -> NamespaceConfig:
    return _decode(value)


def info_of(config: NamespaceConfig) -> NamespaceInfo:
    return NamespaceInfo(
        name=config.name,
        id=config.id,
        state=config.state,
        description=config.description,
        owner_email=config.owner_email,
        data=config.data,
        retention=config.retention,
        limits=config.limits,
        search_attributes=config.search_attributes,
        implicit_search_attributes=config.implicit_search_attributes,
        callers_allowed=config.callers_allowed,
        created_at=config.created_at,
        unremoved=max(config.removal.failed, config.removal.left),
        removal_failures=config.removal.failures or config.removal.left_failures,
        archival=config.archival,
    )


def registered(
    request: r.RegisterNamespaceRequest, there: NamespaceConfig, new_id: str, now: datetime
) -> NamespaceConfig:
    """``there``: what its use has brought about before. Raises InvalidArgument."""
    retention = DEFAULT_RETENTION if request.retention is None else request.retention
    return NamespaceConfig(
        name=request.namespace,
        id=there.id or new_id,
        description=request.description,
        owner_email=request.owner_email,
        data=_without_empty(request.data),
        retention=retention,
        limits=request.limits,
        search_attributes=with_attributes(there, request.search_attributes),
        implicit_search_attributes=request.implicit_search_attributes,
        callers_allowed=_each_once(request.callers_allowed),
        created_at=there.created_at or now,
        request_id=request.request_id,
        registered=True,
        archival=request.archival,
        archived=request.archival or there.archived,
    )


def updated(request: r.UpdateNamespaceRequest, there: NamespaceConfig) -> NamespaceConfig:
    """Raises InvalidArgument."""
    changes: dict[str, object] = {
        name: value
        for name in ("description", "owner_email", "retention", "limits", "implicit_search_attributes", "archival")
        if (value := getattr(request, name)) is not None
    }
    if request.data is not None:
        changes["data"] = notes = _without_empty({**there.data, **request.data})
        if len(notes) > MAX_NAMESPACE_NOTES:
            raise InvalidArgument(
                f"data would have {len(notes)} notes, above the limit of {MAX_NAMESPACE_NOTES}; take some away (an "
                "empty value does that)",
                field="data",
            )
    if request.callers_allowed is not None:
        changes["callers_allowed"] = _each_once(request.callers_allowed)
    if request.remove_search_attributes:
        there = without_attributes(there, request.remove_search_attributes)
    if request.archival:
        changes["archived"] = True
    if request.search_attributes is not None:
        changes["search_attributes"] = with_attributes(there, request.search_attributes)
    return msgspec.structs.replace(there, **changes)


def deprecated(there: NamespaceConfig) -> NamespaceConfig:
    """Raises FailedPrecondition."""
    if there.name == DEFAULT:
        raise FailedPrecondition(f"namespace {DEFAULT!r} is what callers use that name none; it cannot be deprecated")
    return msgspec.structs.replace(there, state=NamespaceState.DEPRECATED)


def deleted(there: NamespaceConfig, *, force: bool, is_used: bool, delete_after: datetime) -> NamespaceConfig:
    """``is_used``: workflows run in it. Raises FailedPrecondition."""
    if there.name == DEFAULT:
        raise FailedPrecondition(f"namespace {DEFAULT!r} is what callers use that name none; it cannot be deleted")
    if not force and there.state is NamespaceState.REGISTERED:
        raise FailedPrecondition(
            f"namespace {there.name!r} is active; deprecate it first and let its workflows end, or delete it with "
            "force, which ends and deletes all that is in it"
        )
    if not force and is_used:
        raise FailedPrecondition(
            f"workflows or activities run in namespace {there.name!r}; let them end or terminate them, or delete it "
            "with force, which ends and deletes all that is in it"
        )
    return msgspec.structs.replace(there, state=NamespaceState.DELETED, delete_after=delete_after)


def tried_again(there: NamespaceConfig, now: datetime) -> NamespaceConfig:
    """Of a deleted namespace with workflows that could not be deleted: at once, and not when their turn comes."""
    if not there.removal.idle:
        return there
    return msgspec.structs.replace(there, delete_after=now, removal=msgspec.structs.replace(there.removal, idle=0))


def check_starts(config: NamespaceConfig) -> None:
    """Raises what keeps a workflow from being started there: NamespaceNotFound, FailedPrecondition."""
    if config.state is NamespaceState.DELETED:
        raise NamespaceNotFound(
            f"namespace {config.name!r} is deleted; use another one, or wait until all that was in it is gone and its "
            "name is free",
            field="namespace",
        )
    if config.state is NamespaceState.DEPRECATED:
        raise FailedPrecondition(
            f"namespace {config.name!r} is deprecated: nothing is started in it any more; use another one"
        )


def with_attributes(there: NamespaceConfig, added: Mapping[str, str]) -> Mapping[str, str]:
    """The search attributes with more of them. Raises InvalidArgument where one is there with another type, or there
    would be too many."""
    for name, kind in added.items():
        if there.search_attributes.get(name, kind) != kind:
            raise InvalidArgument(
                f"search attribute {name!r} of namespace {there.name!r} has the type "
                f"{there.search_attributes[name]}, not {kind}; give it a value of that type, or use another name",
                field="search_attributes",
            )
    together = {**there.search_attributes, **added}
    if len(together) > MAX_SEARCH_ATTRIBUTES:
        raise InvalidArgument(
            f"namespace {there.name!r} would have {len(together)} search attributes, above the limit of "
            f"{MAX_SEARCH_ATTRIBUTES}; use one of those that it has, or remove one",
            field="search_attributes",
        )
    return together


def without_attributes(there: NamespaceConfig, removed: Sequence[str]) -> NamespaceConfig:
    gone = [name for name in dict.fromkeys(removed) if name in there.search_attributes]
    left = {name: kind for name, kind in there.search_attributes.items() if name not in gone}
    before = [name for name in there.removed_attributes if name not in gone]
    return msgspec.structs.replace(
        there, search_attributes=left, removed_attributes=tuple([*before, *gone][-MAX_SEARCH_ATTRIBUTES:])
    )


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _without_empty(data: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in data.items() if value}
