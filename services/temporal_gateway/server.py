"""The gRPC server: one table of RPCs, their handlers, and a sentence for every RPC that is not there."""

import contextlib
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from ..common.clock import IdSource
from .access import Access, Grant, Tls
from .answering import (
    MAX_RECEIVED_BYTES,
    OF_TEMPORAL,
    OPERATOR_SERVICE,
    SERVICE,
    Answering,
    Refused,
    Served,
    served,
    unimplemented,
)
from .gateway import Call, Calls, Gateway, Handlers
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
from .http2 import Http2Application, Http2Server

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

RPCS = served(HANDLERS, operator.HANDLERS)

SERVICES = ("", SERVICE, OPERATOR_SERVICE)
"""Of which health is told."""

_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_RECEIVED_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    # SDKs ping every 30 s also while nothing else is said; without these they would be cut off for it.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


class _Router(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc comes without types
    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._served = RPCS
        self._known: dict[str, Any] = {}

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        path: str = details.method
        known = self._known.get(path)
        if known is None and path.startswith(OF_TEMPORAL):
            known = self._handler(path)
            if path in self._served:
                self._known[path] = known
        return known

    def _handler(self, path: str) -> Any:
        found = self._served.get(path)
        if found is None:
            return grpc.unary_unary_rpc_method_handler(_unimplemented(path))
        return grpc.unary_unary_rpc_method_handler(
            self._answer(found), response_serializer=lambda response: response.SerializeToString()
        )

    def _answer(self, found: Served) -> Callable[[Any, Any], Awaitable[Any]]:
        async def answer(data: bytes, context: Any) -> Any:
            def caller(access: Access) -> Grant:
                return access.caller(context.invocation_metadata(), context.auth_context())

            try:
                return await self._answering.answer(found, data, Call(context.time_remaining), caller)
            except Refused as error:
                refused = error.refused
            await context.abort(refused.code, refused.message, refused.trailing_metadata())

        return answer


def _unimplemented(path: str) -> Callable[[Any, Any], Awaitable[Any]]:
    async def refuse(request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, unimplemented(path))

    return refuse


class GatewayServer:
    """Serves ``calls`` on one port: to all who reach it, or to those whom ``access`` knows; health is told to all.
    ``start`` returns the port that was bound; ``stop`` ends long polls. On loopback in the clear by ``http2``, else by
    grpc.aio."""

    def __init__(self, calls: Calls, server_version: str, ids: IdSource, access: Access | None = None) -> None:
        self._answering = Answering(Gateway(calls, server_version, ids), access)
        self._over: _OverGrpc | Http2Server | None = None

    async def start(self, host: str, port: int, tls: Tls | None = None) -> int:
        """Raises OSError when the port cannot be had."""
        name = f"[{host}]" if ":" in host else host
        try:
            if tls is None and _is_loopback(host):
                application = Http2Application(self._answering, RPCS, SERVICES.__contains__)
                self._over = Http2Server(application)
                return await self._over.start(host, port)
            self._over = _OverGrpc(self._answering)
            return await self._over.start(f"{name}:{port}", tls)
        except (RuntimeError, OSError) as error:
            raise OSError(f"cannot listen on {name}:{port}: {error}") from error

    async def stop(self, grace: float = 1.0) -> None:
        """``grace``: seconds for calls over TLS that are being answered."""
        if isinstance(self._over, Http2Server):
            await self._over.stop()
        elif self._over is not None:
            await self._over.stop(grace)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


class _OverGrpc:
    def __init__(self, answering: Answering) -> None:
        self._health = health_aio.HealthServicer()
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Router(answering),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self, address: str, tls: Tls | None) -> int:
        """Raises RuntimeError when the port cannot be had."""
        bound = self._bind(address, tls)
        await self._server.start()
        for service in SERVICES:
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        return bound

    def _bind(self, address: str, tls: Tls | None) -> int:
        if tls is None:
            plain: int = self._server.add_insecure_port(address)
            return plain
        credentials = grpc.ssl_server_credentials(
            [(tls.key, tls.chain)],
            root_certificates=tls.client_ca,
            require_client_auth=tls.client_ca is not None,
        )
        bound: int = self._server.add_secure_port(address, credentials)
        return bound

    async def stop(self, grace: float) -> None:
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)
