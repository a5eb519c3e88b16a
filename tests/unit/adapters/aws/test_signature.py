from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from stepwell_server.adapters.aws.signature import Credential, Signer

NOW = datetime(2026, 11, 30, 23, 59, 58, tzinfo=UTC)
HOST = "dynamodb.eu-central-1.amazonaws.com"
TARGET = "DynamoDB_20120810.PutItem"


def by_botocore(credential: Credential, body: bytes, now: datetime, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    class Clock(datetime):
        @classmethod
        def utcnow(cls) -> Any:
            return now.replace(tzinfo=None)

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return now

    class Module:
        datetime = Clock

    for name, stands in (("datetime", Module), ("get_current_datetime", lambda *a, **k: now.replace(tzinfo=None))):
        if hasattr(auth, name):
            monkeypatch.setattr(auth, name, stands)
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": TARGET}
    request = AWSRequest("POST", f"https://{HOST}/", data=body, headers=headers)
    auth.SigV4Auth(Credentials(*credential), "dynamodb", "eu-central-1").add_auth(request)
    return dict(request.headers.items())


@pytest.mark.parametrize("token", [None, "a/session+token=="])
@pytest.mark.parametrize("body", [b"{}", '{"Item":{"pk":{"S":"日本"}}}'.encode()])
def test_it_is_the_signature_that_botocore_makes(
    token: str | None, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential = Credential("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token)
    signer = Signer(credential, "eu-central-1", "dynamodb", HOST)
    mine = signer.headers(TARGET, body, NOW)
    theirs = by_botocore(credential, body, NOW, monkeypatch)
    assert mine["X-Amz-Date"] == theirs["X-Amz-Date"] == "20261130T235958Z"
    assert mine["Authorization"] == theirs["Authorization"]
    assert mine.get("X-Amz-Security-Token") == theirs.get("X-Amz-Security-Token")


def test_a_new_day_has_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    credential = Credential("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)
    signer = Signer(credential, "eu-central-1", "dynamodb", HOST)
    signer.headers(TARGET, b"{}", NOW)
    later = datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC)
    theirs = by_botocore(credential, b"{}", later, monkeypatch)
    assert signer.headers(TARGET, b"{}", later)["Authorization"] == theirs["Authorization"]
