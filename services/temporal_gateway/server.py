"""The gRPC server: one table of RPCs, their handlers, and a sentence for every RPC that is not there."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from stepwell.api.errors import ApiError, Internal, InvalidArgument
from temporalio.api.operatorservice.v1 import request_response_pb2 as operator_request_response_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2

from ..common.clock import IdSource
from .access import Access, Grant, Tls, WithinNamespaces
from .errors import Refusal, refusal
from .gateway import Call, Calls, Gateway, Handler, Handlers
from .handlers import (
    activities,
    batches,
    describing,
    executions,
    history,
    namespaces,
    operating,
    operator,
    queries,
    queues,
    schedules,
    standalone,
    system,
    tasks,
    updates,
    visibility,
)

log = logging.getLogger(__name__)

SERVICE = "temporal.api.workflowservice.v1.WorkflowService"
_OF_TEMPORAL = "/temporal.api."
_SHOWN = 300
"""Characters of a path that a refusal repeats."""

HANDLERS: Handlers = {
    **system.HANDLERS,
    **namespaces.HANDLERS,
    **executions.HANDLERS,
    **describing.HANDLERS,
    **queries.HANDLERS,
    **updates.HANDLERS,
    **visibility.HANDLERS,
    **queues.HANDLERS,
    **schedules.HANDLERS,
    **batches.HANDLERS,
    **operating.HANDLERS,
    **tasks.HANDLERS,
    **activities.HANDLERS,
    **standalone.HANDLERS,
    **history.HANDLERS,
}
"""Every RPC of the workflow service that is served, by its name; each module of ``handlers`` has its own part."""

OPERATOR_SERVICE = "temporal.api.operatorservice.v1.OperatorService"

_MAX_RECEIVED_BYTES = 16 * 1024 * 1024
"""Larger than any request that the engine takes, so that it is the engine that says what is too large."""

_OPTIONS = [
    ("grpc.max_receive_message_length", _MAX_RECEIVED_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    # SDKs ping every 30 s also while nothing else is said; without these they would be cut off for it.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


class Served(NamedTuple):
    """One RPC: what it takes, and who answers."""

    name: str
    request_type: Any
    handler: Handler


def served() -> dict[str, Served]:
    """By gRPC path; what an RPC takes is named for it. Raises AttributeError for a name that the service has not."""
    services = (
        (SERVICE, request_response_pb2, HANDLERS),
        (OPERATOR_SERVICE, operator_request_response_pb2, operator.HANDLERS),
    )
    return {
        f"/{service}/{name}": Served(name, getattr(messages, f"{name}Request"), handler)
        for service, messages, handlers in services
        for name, handler in handlers.items()
    }


class _Router(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc comes without types
    def __init__(self, gateway: Gateway, access: Access | None) -> None:
        self._gateway = gateway
        self._access = access
        self._served = served()
        self._known: dict[str, Any] = {}
        self._granted: dict[Grant, Gateway] = {}

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        path: str = details.method
        known = self._known.get(path)
        if known is None and path.startswith(_OF_TEMPORAL):
            known = self._handler(path)
            if path in self._served:
                self._known[path] = known
        return known

    def _handler(self, path: str) -> Any:
        found = self._served.get(path)
        if found is None:
            return grpc.unary_unary_rpc_method_handler(_unimplemented(path))
        return grpc.unary_unary_rpc_method_handler(
            self._answering(found), response_serializer=lambda response: response.SerializeToString()
        )

    def _answering(self, found: Served) -> Callable[[Any, Any], Awaitable[Any]]:
        access, name, handler = self._access, found.name, found.handler

        async def answer(data: bytes, context: Any) -> Any:
            call = Call(context.time_remaining)
            try:
                # Strangers are refused before what they send is read.
                grant = None if access is None else _caller(access, name, context)
                request = _request(found, data)
                gateway = self._gateway if grant is None else self._within(grant, request)
                return await handler(gateway, request, call)
            except ApiError as error:
                refused = refusal(error)
            except grpc.aio.AbortError:
                raise
            except Exception as error:
                log.exception("%s failed", name)
                refused = refusal(Internal(f"{name} failed inside the gateway ({type(error).__name__}); see its log"))
            await _refuse(context, refused)

        return answer

    def _within(self, grant: Grant, request: Any) -> Gateway:
        """The engine as far as the caller reaches. Raises PermissionDenied."""
        if "namespace" in request.DESCRIPTOR.fields_by_name:
            grant.check_namespace(request.namespace)
        granted = self._granted.get(grant)
        if granted is None:
            granted = replace(self._gateway, calls=WithinNamespaces(self._gateway.calls, grant))
            self._granted[grant] = granted
        return granted


def _caller(access: Access, name: str, context: Any) -> Grant:
    """Raises Unauthenticated and PermissionDenied."""
    grant = access.caller(context.invocation_metadata(), context.auth_context())
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


def _unimplemented(path: str) -> Callable[[Any, Any], Awaitable[Any]]:
    async def refuse(request: bytes, context: Any) -> None:
        service, _, method = path[1 : 1 + _SHOWN].partition("/")
        sentence = f"{method} of {service} is not supported by this server; docs/temporal-compatibility.md has what is"
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, sentence)

    return refuse


async def _refuse(context: Any, refused: Refusal) -> None:
    await context.abort(refused.code, refused.message, refused.trailing_metadata())


class GatewayServer:
    """Serves ``calls`` on one port: to all who reach it, or to those whom ``access`` knows; health is told to all.
    ``start`` returns the port that was bound; ``stop`` ends long polls."""

    def __init__(self, calls: Calls, server_version: str, ids: IdSource, access: Access | None = None) -> None:
        self._gateway = Gateway(calls, server_version, ids)
        self._health = health_aio.HealthServicer()
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Router(self._gateway, access),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self, host: str, port: int, tls: Tls | None = None) -> int:
        """Raises OSError when the port cannot be had."""
        name = f"[{host}]" if ":" in host else host
        try:
            bound = self._bind(f"{name}:{port}", tls)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {name}:{port}: {error}") from error
        await self._server.start()
        for service in ("", SERVICE, OPERATOR_SERVICE):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        return bound

    def _bind(self, address: str, tls: Tls | None) -> int:
        bound: int
        if tls is None:
            bound = self._server.add_insecure_port(address)
        else:
            credentials = grpc.ssl_server_credentials(
                [(tls.key, tls.chain)],
                root_certificates=tls.client_ca,
                require_client_auth=tls.client_ca is not None,
            )
            bound = self._server.add_secure_port(address, credentials)
        return bound

    async def stop(self, grace: float = 1.0) -> None:
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)
