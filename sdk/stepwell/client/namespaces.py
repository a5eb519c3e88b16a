"""Namespaces through a client: ``client.namespaces``."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..api import operations as op
from ..api import requests as r
from ..api.namespaces import NamespaceInfo, NamespaceLimits
from ..search_attributes import SearchAttributeKey

_Call = Callable[[Any, Any], Awaitable[Any]]


class NamespaceClient:
    """Registers namespaces and changes them; of any name, whatever the client's own namespace is. Raises
    :class:`RPCError`."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    async def register(
        self,
        name: str,
        *,
        description: str = "",
        owner_email: str = "",
        data: Mapping[str, str] | None = None,
        retention: timedelta | None = None,
        limits: NamespaceLimits | None = None,
        search_attributes: tuple[SearchAttributeKey[Any], ...] = (),
        implicit_search_attributes: bool = True,
        callers_allowed: Sequence[str] = (),
        archival: bool = False,
    ) -> str:
        """The id of the new namespace. ``retention``: how long closed runs are kept, an hour at least and 7 days by
        default. ``limits`` are each by server process. ``callers_allowed``: namespaces whose workflows may start,
        signal, cancel and wait for workflows of this one, ``"*"`` for all; by default none.
        ``archival``: whether closed runs are archived, to be found when their retention is over."""
        request = r.RegisterNamespaceRequest(
            namespace=name,
            description=description,
            owner_email=owner_email,
            data=dict(data or {}),
            retention=retention,
            limits=limits or NamespaceLimits(),
            search_attributes=_types(search_attributes),
            implicit_search_attributes=implicit_search_attributes,
            callers_allowed=_names("callers_allowed", callers_allowed),
            request_id=uuid.uuid4().hex,
            archival=archival,
        )
        response: r.RegisterNamespaceResponse = await self._call(op.REGISTER_NAMESPACE, request)
        return response.id

    async def describe(self, name: str) -> NamespaceInfo:
        response: r.DescribeNamespaceResponse = await self._call(
            op.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace=name)
        )
        return response.info

    async def update(
        self,
        name: str,
        *,
        description: str | None = None,
        owner_email: str | None = None,
        data: Mapping[str, str] | None = None,
        retention: timedelta | None = None,
        limits: NamespaceLimits | None = None,
        search_attributes: tuple[SearchAttributeKey[Any], ...] = (),
        implicit_search_attributes: bool | None = None,
        callers_allowed: Sequence[str] | None = None,
        remove_search_attributes: Sequence[str] = (),
        archival: bool | None = None,
    ) -> NamespaceInfo:
        """Changes what is given. ``data`` adds notes (an empty value takes one away), ``search_attributes`` adds some
        once those of ``remove_search_attributes`` are gone (runs keep their values), ``limits`` and ``callers_allowed``
        are all set anew. ``archival`` is for runs that close from now on; what is archived stays."""
        request = r.UpdateNamespaceRequest(
            namespace=name,
            description=description,
            owner_email=owner_email,
            data=None if data is None else dict(data),
            retention=retention,
            limits=limits,
            search_attributes=_types(search_attributes) or None,
            implicit_search_attributes=implicit_search_attributes,
            callers_allowed=None if callers_allowed is None else _names("callers_allowed", callers_allowed),
            remove_search_attributes=_names("remove_search_attributes", remove_search_attributes),
            archival=archival,
        )
        response: r.UpdateNamespaceResponse = await self._call(op.UPDATE_NAMESPACE, request)
        return response.info

    async def deprecate(self, name: str) -> None:
        """Nothing is started in it any more; what runs goes on."""
        await self._call(op.DEPRECATE_NAMESPACE, r.DeprecateNamespaceRequest(namespace=name))

    async def delete(self, name: str, *, force: bool = False, delay: timedelta | None = None) -> None:
        """Hides it at once; what is in it goes in the background, after ``delay``, and then its name is free. Refused
        while it is not deprecated, or workflows run in it, unless with ``force``, which ends and deletes them."""
        await self._call(op.DELETE_NAMESPACE, r.DeleteNamespaceRequest(namespace=name, force=force, delay=delay))

    async def list(self, *, page_size: int = 100) -> AsyncIterator[NamespaceInfo]:
        """In the order of names."""
        token = b""
        while True:
            request = r.ListNamespacesRequest(page_size=page_size, next_page_token=token)
            response: r.ListNamespacesResponse = await self._call(op.LIST_NAMESPACES, request)
            for info in response.namespaces:
                yield info
            token = response.next_page_token
            if not token:
                return


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"{what} is a list of names, such as [{names!r}], not text")
    return tuple(names)


def _types(keys: tuple[SearchAttributeKey[Any], ...]) -> dict[str, str]:
    return {key.name: key.indexed_value_type.value for key in keys}
