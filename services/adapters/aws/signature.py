"""AWS Signature Version 4 of calls in JSON, for one credential and service. Pure: the time is an argument.

The signing key is derived once a day. botocore does the same for any request there is, at ten times the cost.
"""

import hmac
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

_CONTENT_TYPE = "application/x-amz-json-1.0"


class Credential(NamedTuple):
    access_key: str
    secret_key: str
    token: str | None


class Signer:
    def __init__(self, credential: Credential, region: str, service: str, host: str) -> None:
        self.credential = credential
        self._region = region
        self._service = service
        self._host = host
        self._day = ""
        self._key = b""
        signed = ["content-type", "host", "x-amz-date", "x-amz-target"]
        if credential.token:
            signed.insert(3, "x-amz-security-token")
        self._signed = ";".join(signed)

    def headers(self, target: str, body: bytes, now: datetime) -> Mapping[str, str]:
        """Of a POST of ``body`` to the root of the host."""
        date = now.strftime("%Y%m%dT%H%M%SZ")
        day = date[:8]
        if day != self._day:
            self._key, self._day = self._derive(day), day
        token = self.credential.token
        more = f"x-amz-security-token:{token}\n" if token else ""
        request = (
            f"POST\n/\n\ncontent-type:{_CONTENT_TYPE}\nhost:{self._host}\nx-amz-date:{date}\n{more}"
            f"x-amz-target:{target}\n\n{self._signed}\n{sha256(body).hexdigest()}"
        )
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        headers = {
            "Content-Type": _CONTENT_TYPE,
            "X-Amz-Date": date,
            "X-Amz-Target": target,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={self.credential.access_key}/{scope}, "
            f"SignedHeaders={self._signed}, Signature={signature}",
        }
        if token:
            headers["X-Amz-Security-Token"] = token
        return headers

    def _derive(self, day: str) -> bytes:
        key = f"AWS4{self.credential.secret_key}".encode()
        for part in (day, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key
