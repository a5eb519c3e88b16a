"""ROUTES as a function behind an HTTP API (payload format 2.0), by the resolver of Powertools.

It wires nothing: an entry point gives it the engine and a loop. No call waits here, and a call ends what it began:
background work of the engine is waited for before the answer, since a function stands still between two calls.
"""

import base64
import binascii
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote

import msgspec
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from stepwell.api.codec import encode_json
from stepwell.api.errors import ApiError, InvalidArgument
from stepwell.api.limits import MAX_REQUEST_BYTES

from ..common import metric_names as names
from ..common.metrics import NO_METRICS, Metrics
from ..common.principals import NOBODY, acting
from ..history.engine import Engine
from .bodies import decode_body, no_json, no_such_path, too_large
from .limiting import SERVED, Limiter
from .paths import PathIndex, Target, check_agreement
from .refusals import OK, api_error, retry_after
from .routes import ROUTES

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Event = dict[str, Any]


class _Execution(msgspec.Struct):
    workflow_id: str = ""


class _Names(msgspec.Struct):
    """What of a body stands in paths."""

    namespace: str = "default"
    workflow_id: str = ""
    workflow_type: str = ""
    task_queue: str = ""
    schedule_id: str = ""
    activity_id: str = ""
    execution: _Execution | None = None


_PATHS = PathIndex()

_CURRENT: ContextVar[APIGatewayProxyEventV2] = ContextVar("event")
"""The resolver keeps the event that it has last been given, in one place for all of a process; where calls come side by
side, that may be another one's."""

SETTLE_SECONDS = 5.0
"""What is not done by then, deadlines do."""


def api_handler(engine: Engine, run: Run, metrics: Metrics = NO_METRICS) -> Callable[[Event, Any], Event]:
    """``run`` runs a coroutine to its end on the loop that the engine lives on."""
    app = APIGatewayHttpResolver()
    limiter = Limiter(engine.namespaces, SERVED)

    def endpoint(**parameters: str) -> Response[str]:
        event = _CURRENT.get()
        found = _PATHS.find(event.path)
        if found is None:
            return _refusal(no_such_path(event.path))
        answer, code = _answer(engine, limiter, run, found[0], event.raw_event)
        metrics.count(names.REQUESTS, operation=found[0].route.operation.name, code=code)
        return answer

    for route in ROUTES:
        pattern = route.operation.path.replace("{", "<").replace("}", ">")
        app.post(pattern)(endpoint)

    @app.not_found
    def not_found(error: Exception) -> Response[str]:
        """The resolver's patterns match less than our paths do, such as an empty id, which is refused by its name."""
        event = _CURRENT.get()
        return endpoint() if event.http_method == "POST" else _refusal(no_such_path(event.path))

    def handler(event: Event, context: Any) -> Event:
        encoded = with_encoded_path(event)
        token = _CURRENT.set(APIGatewayProxyEventV2(encoded))
        try:
            answer: Event = app.resolve(encoded, context)
        finally:
            _CURRENT.reset(token)
        return answer

    return handler


def with_encoded_path(event: Event) -> Event:
    """The event with the path as the caller sent it. The gateway hands it over decoded, so that an id with a slash
    would be several segments; its route key and path parameters say what is what, and where an id has a slash, which
    no route but the one for everything has, the body does: it has to agree with the path anyway."""
    parameters: dict[str, str] = event.get("pathParameters") or {}
    _, _, pattern = event.get("routeKey", "").partition(" ")
    if not pattern.startswith("/") or "{proxy+}" in pattern:
        path = _of_body(event)
        return event if path is None else {**event, "rawPath": path}
    segments = pattern.split("/")
    for index, segment in enumerate(segments):
        if segment.startswith("{"):
            segments[index] = quote(parameters.get(segment[1:-1], ""), safe="")
    return {**event, "rawPath": "/".join(segments), "requestContext": {**event["requestContext"], "stage": "$default"}}


def _of_body(event: Event) -> str | None:
    """The path of the one operation and body that the gateway would have decoded to this event's."""
    path = event["rawPath"]
    if _PATHS.find(path) is not None:
        return None
    try:
        said = msgspec.json.decode(_body(event), type=_Names)
    except (ApiError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    workflow_id = said.workflow_id if said.execution is None else said.execution.workflow_id
    for route in ROUTES:
        pattern = route.operation.path
        names = {
            "namespace": said.namespace,
            "workflow_id": workflow_id,
            "workflow_type": said.workflow_type,
            "task_queue": said.task_queue,
            "schedule_id": said.schedule_id,
            "activity_id": said.activity_id,
        }
        if pattern.format(**names) == path:
            return pattern.format(**{name: quote(text, safe="") for name, text in names.items()})
    return None


def _check_names(request: Any) -> None:
    """Policies of IAM go by the decoded path, and their wildcards match slashes: with one in a name that stands before
    others, a caller could be let through to another namespace, type or queue."""
    for name in ("namespace", "workflow_type", "task_queue"):
        if "/" in str(getattr(request, name, "")):
            raise InvalidArgument(
                f"{name} has a slash, and access is granted by path, where it could stand for another; leave it out",
                field=name,
            )


def _answer(engine: Engine, limiter: Limiter, run: Run, target: Target, event: Event) -> tuple[Response[str], str]:
    """With its code."""
    operation = target.route.operation
    try:
        request = decode_body(_body(event), operation)
        check_agreement(target, event["rawPath"].split("/"), request)
        _check_names(request)
        response = run(_call(engine, limiter, target, request, _caller(event)))
    except Exception as error:
        refused = api_error(error, operation.name)
        return _refusal(refused), refused.code
    return Response(200, "application/json", encode_json(response).decode()), OK


def _caller(event: Event) -> str:
    """The ARN of the user or role whose signature the gateway has verified: its own word, which no request can have."""
    authorizer = event["requestContext"].get("authorizer") or {}
    arn = (authorizer.get("iam") or {}).get("userArn")
    return arn if isinstance(arn, str) else NOBODY


async def _call(engine: Engine, limiter: Limiter, target: Target, request: Any, caller: str) -> Any:
    try:
        with acting(caller):
            return await limiter.carry_out(target.handler, engine, target.route.operation, request)
    finally:
        await engine.settle(SETTLE_SECONDS)


def _body(event: Event) -> bytes:
    content_type = next(
        (value for name, value in event.get("headers", {}).items() if name.lower() == "content-type"), ""
    )
    if content_type.split(";", 1)[0].strip().lower() != "application/json":
        raise no_json(content_type)
    text: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        body = text.encode()
    else:
        try:
            body = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise InvalidArgument("the body is not base64, as the gateway says", field="body") from error
    if len(body) > MAX_REQUEST_BYTES:
        raise too_large(len(body), MAX_REQUEST_BYTES)
    return body


def _refusal(error: ApiError) -> Response[str]:
    seconds = retry_after(error)
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    return Response(error.http_status, "application/json", encode_json(error.body()).decode(), headers=headers)
