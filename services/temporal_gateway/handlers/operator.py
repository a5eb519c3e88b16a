"""The operator service: search attributes of a namespace, and its end."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.errors import InvalidArgument, NotFound
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import request_response_pb2 as pb

from ...visibility import attributes
from ..gateway import Call, Gateway, Handlers
from ..search import their_name

_PREFIX = "INDEXED_VALUE_TYPE_"
_OURS = {
    value: "".join(part.title() for part in name.removeprefix(_PREFIX).split("_"))
    for name, value in IndexedValueType.items()
    if value
}
_THEIRS = {name: value for value, name in _OURS.items()}
SYSTEM_ATTRIBUTES = {name: _THEIRS[attribute.type] for name, attribute in attributes.SYSTEM.items()} | {
    their_name(name): _THEIRS[kind] for name, kind in attributes.MANAGED.items()
}
"""Every run has the first ones; the others are what the system sets."""


async def add_search_attributes(
    gateway: Gateway, request: pb.AddSearchAttributesRequest, call: Call
) -> pb.AddSearchAttributesResponse:
    types: dict[str, str] = {}
    for name, kind in request.search_attributes.items():
        if kind not in _OURS:
            raise InvalidArgument(
                f"search attribute {name!r} has no type; give it one of {', '.join(_THEIRS)}", field="search_attributes"
            )
        types[name] = _OURS[kind]
    asked = r.UpdateNamespaceRequest(namespace=request.namespace, search_attributes=types)
    await gateway.call(o.UPDATE_NAMESPACE, asked)
    return pb.AddSearchAttributesResponse()


async def remove_search_attributes(
    gateway: Gateway, request: pb.RemoveSearchAttributesRequest, call: Call
) -> pb.RemoveSearchAttributesResponse:
    asked = r.UpdateNamespaceRequest(
        namespace=request.namespace, remove_search_attributes=tuple(request.search_attributes)
    )
    if not any(name in SYSTEM_ATTRIBUTES for name in request.search_attributes):  # of which the engine has a word
        described = await gateway.call(o.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace=request.namespace))
        for name in request.search_attributes:
            if name not in described.info.search_attributes:
                raise NotFound(f"namespace {request.namespace!r} has no search attribute {name!r}; list those it has")
    await gateway.call(o.UPDATE_NAMESPACE, asked)
    return pb.RemoveSearchAttributesResponse()


async def list_search_attributes(
    gateway: Gateway, request: pb.ListSearchAttributesRequest, call: Call
) -> pb.ListSearchAttributesResponse:
    answer = await gateway.call(o.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace=request.namespace))
    return pb.ListSearchAttributesResponse(
        system_attributes=SYSTEM_ATTRIBUTES,
        custom_attributes={name: _THEIRS[kind] for name, kind in answer.info.search_attributes.items()},
    )


async def delete_namespace(
    gateway: Gateway, request: pb.DeleteNamespaceRequest, call: Call
) -> pb.DeleteNamespaceResponse:
    if not request.namespace:
        raise InvalidArgument("namespace is empty; name it, as ids are not looked up here", field="namespace")
    await gateway.call(o.DELETE_NAMESPACE, r.DeleteNamespaceRequest(namespace=request.namespace, force=True))
    return pb.DeleteNamespaceResponse(deleted_namespace=request.namespace)


HANDLERS: Handlers = {
    "AddSearchAttributes": add_search_attributes,
    "RemoveSearchAttributes": remove_search_attributes,
    "ListSearchAttributes": list_search_attributes,
    "DeleteNamespace": delete_namespace,
}
