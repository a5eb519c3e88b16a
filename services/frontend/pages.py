"""The pages around the API: a word of welcome, health, and the OpenAPI document."""

from collections.abc import Callable
from html import escape

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from stepwell.api.codec import encode_json
from stepwell.api.errors import ErrorBody, NotFound

from .openapi import openapi_document

OPENAPI_PATH = "/api/v1/openapi.json"
HEALTH_PATH = "/healthz"
"""Of load balancers too, so nobody has to sign for it; it says nothing but whether the server serves."""

_WELCOME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stepwell</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}}
code,pre{{background:#8882;padding:.1em .3em}}pre{{padding:.8em}}</style></head>
<body><h1>Stepwell {version}</h1>
<p>This is a Stepwell engine: it keeps running workflows, and everything they have done, in <code>{database}</code>.</p>
<ul><li>API document (OpenAPI 3.1): <a href="{openapi}">{openapi}</a></li>
<li>Health: <a href="/healthz">/healthz</a></li></ul>
<p>Look at workflows from the command line:</p>
<pre>stepwell workflow list --address {address}
stepwell workflow describe WORKFLOW_ID --address {address}</pre>
<p>Connect from Python:</p>
<pre>client = await Client.connect("{address}")</pre>
</body></html>
"""


def pages(*, database: str, version: str, draining: Callable[[], bool]) -> Starlette:
    """``database`` says where data is kept, for people."""
    document = encode_json(openapi_document(version))

    async def welcome(request: Request) -> Response:
        address = f"{request.url.scheme}://{request.headers['host']}"
        page = _WELCOME.format(
            version=escape(version), database=escape(database), openapi=OPENAPI_PATH, address=escape(address)
        )
        return HTMLResponse(page, headers={"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"})

    async def health(request: Request) -> Response:
        if draining():
            return PlainTextResponse("stopping\n", status_code=503)
        return PlainTextResponse("ok\n")

    async def openapi(request: Request) -> Response:
        return Response(document, media_type="application/json")

    return Starlette(
        routes=[
            Route("/", welcome),
            Route(HEALTH_PATH, health),
            Route(OPENAPI_PATH, openapi),
        ],
        exception_handlers={HTTPException: _http_error},
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    if status == 405 or request.url.path.startswith("/api/"):
        message = f"{request.method} {request.url.path} is not served; operations are POST, see {OPENAPI_PATH}"
    else:
        message = f"there is no page {request.url.path}; see /"
    body = encode_json(ErrorBody(code=NotFound.code, message=message))
    return Response(body, status_code=status, media_type="application/json", headers=error.headers)
