"""What an RPC is answered, whichever transport carries it: its handler, asked by a caller who may call it."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from stepwell.api.errors import ApiError, Internal, InvalidArgument
from temporalio.api.operatorservice.v1 import request_response_pb2 as operator_request_response_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2

from .access import Access, Grant, WithinNamespaces
from .errors import Refusal, refusal
from .gateway import Call, Gateway, Handler, Handlers

log = logging.getLogger(__name__)

SERVICE = "temporal.api.workflowservice.v1.WorkflowService"
OPERATOR_SERVICE = "temporal.api.operatorservice.v1.OperatorService"
OF_TEMPORAL = "/temporal.api."
MAX_RECEIVED_BYTES = 16 * 1024 * 1024
"""Larger than any request that the engine takes, so that it is the engine that says what is too large."""

_SHOWN = 300
"""Characters of a path that a refusal repeats."""

Caller = Callable[[Access], Grant]
"""Who calls, by what the transport knows. Raises Unauthenticated."""


class Served(NamedTuple):
    """One RPC: what it takes, and who answers."""

    name: str
    request_type: Any
    handler: Handler


class Refused(Exception):
    """The call is answered with this in place of a response."""

    def __init__(self, refused: Refusal) -> None:
        super().__init__(refused.message)
        self.refused = refused


def served(handlers: Handlers, operator_handlers: Handlers) -> dict[str, Served]:
    """By gRPC path; what an RPC takes is named for it. Raises AttributeError for a name that the service has not."""
    services = (
        (SERVICE, request_response_pb2, handlers),
        (OPERATOR_SERVICE, operator_request_response_pb2, operator_handlers),
    )
    return {
        f"/{service}/{name}": Served(name, getattr(messages, f"{name}Request"), handler)
        for service, messages, of_service in services
        for name, handler in of_service.items()
    }


def unimplemented(path: str) -> str:
    """The sentence for an RPC that is not there."""
    service, _, method = path[1 : 1 + _SHOWN].partition("/")
    return f"{method} of {service} is not supported by this server; docs/temporal-compatibility.md has what is"


class Answering:
    """``access`` None: all who reach the port may call all."""

    def __init__(self, gateway: Gateway, access: Access | None) -> None:
        self._gateway = gateway
        self._access = access
        self._granted: dict[Grant, Gateway] = {}

    async def answer(self, found: Served, data: bytes, call: Call, caller: Caller) -> Any:
        """The response, a message. Raises Refused."""
        access, name = self._access, found.name
        try:
            # Strangers are refused before what they send is read.
            grant = None if access is None else _granted(access, name, caller)
            request = _request(found, data)
            gateway = self._gateway if access is None or grant is None else self._within(access, grant, request)
            return await found.handler(gateway, request, call)
        except ApiError as error:
            raise Refused(refusal(error)) from None
        except Exception as error:
            log.exception("%s failed", name)
            failed = Internal(f"{name} failed inside the gateway ({type(error).__name__}); see its log")
            raise Refused(refusal(failed)) from None

    def _within(self, access: Access, grant: Grant, request: Any) -> Gateway:
        """The engine as far as the caller reaches. Raises PermissionDenied."""
        if "namespace" in request.DESCRIPTOR.fields_by_name:
            grant.check_namespace(request.namespace)
        granted = self._granted.get(grant)
        if granted is None:
            granted = replace(self._gateway, calls=WithinNamespaces(self._gateway.calls, grant, access))
            self._granted[grant] = granted
        return granted


def _granted(access: Access, name: str, caller: Caller) -> Grant:
    """Raises Unauthenticated and PermissionDenied."""
    grant = caller(access)
    access.check_role(grant, name)
    return grant


def _request(found: Served, data: bytes) -> Any:
    """Raises InvalidArgument."""
    try:
        return found.request_type.FromString(data)
    except DecodeError:
        raise InvalidArgument(
            f"the call has no {found.name}Request in the form of protobuf; send what an SDK of Temporal does. A repeat "
            "does not help"
        ) from None
