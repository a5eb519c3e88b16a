"""Register namespaces, change them, let them go (MT-01 to MT-03)."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from ._struct import Record
from .namespaces import NamespaceInfo, NamespaceLimits


class RegisterNamespaceRequest(Record, frozen=True, kw_only=True):
    """A name that is taken is refused with NamespaceAlreadyExists, except to a repeat with the same ``request_id``."""

    namespace: str
    description: str = ""
    owner_email: str = ""
    data: Mapping[str, str] = {}
    retention: timedelta | None = None
    """At least an hour; None: the installation's, see GetSystemInfo."""
    limits: NamespaceLimits = NamespaceLimits()
    search_attributes: Mapping[str, str] = {}
    """Types (``Keyword``, ``Text``, ``Int``, ``Double``, ``Bool``, ``Datetime``, ``KeywordList``) by name."""
    implicit_search_attributes: bool = True
    request_id: str = ""
    callers_allowed: tuple[str, ...] = ()
    """Namespaces whose workflows may reach into this one (MT-11); ``*``: all."""
    archival: bool = False
    """Whether runs that close in it are archived (OP-06)."""


class RegisterNamespaceResponse(Record, frozen=True, kw_only=True):
    id: str


class DescribeNamespaceRequest(Record, frozen=True, kw_only=True):
    namespace: str


class DescribeNamespaceResponse(Record, frozen=True, kw_only=True):
    info: NamespaceInfo


class UpdateNamespaceRequest(Record, frozen=True, kw_only=True):
    """What is None stays as it is."""

    namespace: str
    description: str | None = None
    owner_email: str | None = None
    data: Mapping[str, str] | None = None
    """Notes to add or change; one with an empty value is taken away."""
    retention: timedelta | None = None
    """For runs that close from now on, and on SQLite for all."""
    limits: NamespaceLimits | None = None
    """All of them anew."""
    search_attributes: Mapping[str, str] | None = None
    """To add; the type of one that is there cannot change, unless it is removed first."""
    implicit_search_attributes: bool | None = None
    callers_allowed: tuple[str, ...] | None = None
    """All of them anew; within half a minute everywhere. What was let in before goes on."""
    remove_search_attributes: tuple[str, ...] = ()
    """Before others are added, so that one may come back with another type. Runs keep their values, which are searched
    for again if it does. One that is not there is none to remove."""
    archival: bool | None = None
    """For runs that close from now on; what is archived stays."""


class UpdateNamespaceResponse(Record, frozen=True, kw_only=True):
    info: NamespaceInfo


class DeprecateNamespaceRequest(Record, frozen=True, kw_only=True):
    """No workflow is started in it from then on; what runs goes on. Again is harmless."""

    namespace: str


class DeprecateNamespaceResponse(Record, frozen=True, kw_only=True):
    pass


class DeleteNamespaceRequest(Record, frozen=True, kw_only=True):
    """Refused while it is not deprecated, or workflows run in it, unless with ``force``. Calls in it are refused at
    once; what is in it goes in the background, and then its name is free. Again is harmless."""

    namespace: str
    force: bool = False
    """All that is in it is ended and deleted."""
    delay: timedelta | None = None
    """How long to wait with the data; nothing brings it back."""


class DeleteNamespaceResponse(Record, frozen=True, kw_only=True):
    delete_after: datetime | None = None
    """When the data begins to go."""


class ListNamespacesRequest(Record, frozen=True, kw_only=True):
    """In the order of names."""

    page_size: int = 100
    next_page_token: bytes = b""


class ListNamespacesResponse(Record, frozen=True, kw_only=True):
    namespaces: tuple[NamespaceInfo, ...] = ()
    next_page_token: bytes = b""
