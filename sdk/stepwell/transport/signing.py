"""Signs requests with AWS Signature Version 4, with the usual credential chain. Needs ``stepwell[aws]``.

Each attempt of a call is signed anew and has a nonce of its own, so that a server that verifies signatures can refuse a
request that somebody recorded and sends again.
"""

import asyncio
import os
import re
import uuid
from typing import Any

from ..api.errors import Unauthenticated
from .aws_troubles import NO_CREDENTIALS, NOT_INSTALLED, of_library

SERVICE = "execute-api"
NONCE_HEADER = "x-stepwell-nonce"

_AWS_HOST = re.compile(r"\.(?:execute-api|lambda-url)\.(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|on\.aws)$")
_SENT_BY_CLIENT = ("content-type", "host")


def is_aws(host: str) -> bool:
    """Whether the address is one of AWS, where every request is to be signed."""
    return _AWS_HOST.search(host) is not None


class RequestSigner:
    """For one host. The region is the host's, else that of the environment (``AWS_REGION``, the profile).

    Raises ``RuntimeError`` when the AWS packages are not installed.
    """

    def __init__(self, host: str) -> None:
        try:
            from botocore.session import Session
        except ImportError as error:
            raise RuntimeError(f"requests to this address are signed, and {NOT_INSTALLED}") from error
        self._session = Session()
        found = _AWS_HOST.search(host)
        self._region: str | None = found["region"] if found else None
        self._credentials: Any = None

    async def headers(self, url: str, body: bytes) -> dict[str, str]:
        """What to send beside ``content-type`` with a POST of ``body`` to ``url``. Raises Unauthenticated when there
        are no credentials."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        frozen = await self._frozen()
        request = AWSRequest(
            "POST", url, data=body, headers={"content-type": "application/json", NONCE_HEADER: uuid.uuid4().hex}
        )
        SigV4Auth(frozen, SERVICE, self._region).add_auth(request)
        return {name: value for name, value in request.headers.items() if name.lower() not in _SENT_BY_CLIENT}

    async def _frozen(self) -> Any:
        """Off the loop when something has to be read: files, a metadata service, an assumed role."""
        from botocore.exceptions import BotoCoreError

        try:
            if self._credentials is None:
                self._credentials = await asyncio.to_thread(self._find)
            if not hasattr(self._credentials, "refresh_needed"):
                return self._credentials.get_frozen_credentials()
            return await asyncio.to_thread(self._credentials.get_frozen_credentials)
        except BotoCoreError as error:
            raise of_library(error, "requests cannot be signed") from error

    def _find(self) -> Any:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise Unauthenticated(f"there are no AWS credentials to sign requests with; {NO_CREDENTIALS}")
        if self._region is None:
            self._region = self._session.get_config_variable("region") or os.environ.get("AWS_REGION") or "us-east-1"
        return credentials
