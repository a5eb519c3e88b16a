"""Requests as events of an HTTP API of API Gateway (payload format 2.0), as functions get them."""

from typing import Any
from urllib.parse import unquote

from stepwell.api.operations import Operation
from stepwell.transport.http import _encode


def http_event(operation: Operation[Any, Any], request: Any) -> dict[str, Any]:
    """As the gateway makes it of what the SDK sends: the path is decoded, its parts are in ``pathParameters``."""
    sent = operation.url_path(request)
    parameters = {
        name[1:-1]: unquote(value)
        for name, value in zip(operation.path.split("/"), sent.split("/"), strict=True)
        if name.startswith("{")
    }
    return event_of(
        unquote(sent), _encode(operation, request).decode(), route_key=f"POST {operation.path}", parameters=parameters
    )


def event_of(
    path: str,
    body: str,
    *,
    route_key: str = "$default",
    parameters: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    is_base64: bool = False,
    method: str = "POST",
) -> dict[str, Any]:
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"} if headers is None else headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": ""},
            "requestId": "1",
            "routeKey": route_key,
            "stage": "$default",
        },
        "body": body,
        "isBase64Encoded": is_base64,
    }
    if parameters:
        event["pathParameters"] = parameters
    return event
