"""Calls of DynamoDB by a client of our own: the JSON that the service speaks, signed and sent by one pooled session.

What botocore does for each call (validation against the model, serializers, events, signing from scratch) costs several
times what the call itself does, and the process that makes the calls is also the engine (ADR 0009). Credentials, region
and endpoint are botocore's to find, so everything is configured as ever; so are retries and errors the same as with it.
"""

import os
import ssl
import zlib
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from .faults import AwsRefused, fault_of, unavailable
from .signature import Credential, Signer

_VERSION = "DynamoDB_20120810"
_FIXED = {"Accept-Encoding": "identity", "User-Agent": "stepwell-server"}
_ITEMS = ("Item", "Attributes")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _trusted() -> ssl.SSLContext | bool:
    """Certificates of the file that botocore trusts as well (``AWS_CA_BUNDLE``), else the system's."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    return ssl.create_default_context(cafile=bundle) if bundle else True


class LeanDynamo:
    """``client``: botocore's, which knows where to send to; ``credentials``: those of its session."""

    def __init__(self, client: Any, credentials: Any, read_seconds: float, connect_seconds: float, pool: int) -> None:
        self._url = client.meta.endpoint_url
        self._region = client.meta.region_name
        self._host = urlsplit(self._url).netloc
        self._credentials = credentials
        self._signer: Signer | None = None
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=pool, ssl=_trusted()),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds, sock_read=read_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def close(self) -> None:
        await self._http.close()

    async def send(self, operation: str, parameters: Mapping[str, Any], resource: str) -> dict[str, Any]:
        """One try. Raises ConditionFailed, StoreUnavailable, AwsRefused."""
        target, body = _target(operation), _encode(parameters)
        signer = await self._signed_by(operation, resource)
        headers = {**_FIXED, **signer.headers(target, body, datetime.now(UTC))}
        try:
            async with self._http.post(self._url, data=body, headers=headers) as response:
                answer = await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise unavailable("dynamodb", operation, resource, reason) from error
        checksum = response.headers.get("x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(answer):
            raise unavailable("dynamodb", operation, resource, "the answer was damaged on its way")
        told = _json(answer)
        if response.status == 200:
            if told is None:
                raise unavailable("dynamodb", operation, resource, "the answer is no JSON")
            return _with_bytes(told)
        raise _fault(operation, resource, response.status, told, response.headers)

    async def _signed_by(self, operation: str, resource: str) -> Signer:
        """Credentials that expire are renewed by botocore when they are asked for."""
        if self._credentials is None:
            raise AwsRefused(
                "dynamodb",
                operation,
                resource,
                "NoCredentials",
                "there are no credentials in the environment, the configuration or the instance's role",
            )
        frozen = await self._credentials.get_frozen_credentials()
        credential = Credential(frozen.access_key, frozen.secret_key, frozen.token)
        if self._signer is None or self._signer.credential != credential:
            self._signer = Signer(credential, self._region, "dynamodb", self._host)
        return self._signer


@cache
def _target(operation: str) -> str:
    """``put_item`` is PutItem."""
    return f"{_VERSION}.{operation.title().replace('_', '')}"


def _json(answer: bytes) -> dict[str, Any] | None:
    """None for what is none, such as the page of a proxy."""
    try:
        told = _decode(answer)
    except msgspec.DecodeError:
        return None
    return told if isinstance(told, dict) else None


def _fault(
    operation: str, resource: str, status: int, told: dict[str, Any] | None, headers: Mapping[str, str]
) -> Exception:
    told = told or {}
    code = str(told.get("__type") or headers.get("x-amzn-ErrorType") or status).rpartition("#")[2].partition(":")[0]
    message = str(told.get("message") or told.get("Message") or "no message")
    return fault_of("dynamodb", operation, resource, code, message, status, _with_bytes(told).get("Item"))


def _with_bytes(told: dict[str, Any]) -> dict[str, Any]:
    """Bytes travel as text."""
    for name in _ITEMS:
        if name in told:
            _decode_bytes(told[name])
    for item in told.get("Items", ()):
        _decode_bytes(item)
    for items in told.get("Responses", {}).values() if isinstance(told.get("Responses"), dict) else ():
        for item in items:
            _decode_bytes(item)
    return told


def _decode_bytes(attributes: dict[str, Any]) -> None:
    for typed in attributes.values():
        if "B" in typed:
            typed["B"] = b64decode(typed["B"])
        elif "M" in typed:
            _decode_bytes(typed["M"])
        elif "L" in typed:
            _decode_bytes(dict(enumerate(typed["L"])))  # type: ignore[arg-type]
        elif "BS" in typed:
            typed["BS"] = [b64decode(each) for each in typed["BS"]]
