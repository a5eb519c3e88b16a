"""Verifies AWS Signature Version 4 where no API Gateway does: who calls, that nothing was changed, and that nobody has
sent it before.

Keys are this server's own, from its configuration; what each may do is a list of path patterns, as IAM policies name
them. A signature is good for five minutes around the server's time, and once.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from stepwell.api.errors import ApiError, PermissionDenied, Unauthenticated, Unavailable

from ..common.clock import Clock
from .guard import Headers

SKEW = timedelta(minutes=5)
"""As AWS allows."""

MOST_REMEMBERED = 500_000
"""Signatures of the last minutes, some 60 MB; a server that has seen so many refuses further ones for a while."""

_SERVICE = "execute-api"
_ALGORITHM = "AWS4-HMAC-SHA256"
_MUST_BE_SIGNED = frozenset({"host", "x-amz-date"})
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/(?P<date>\d{8})/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)/"
    r"aws4_request, ?SignedHeaders=(?P<headers>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_HOW = "sign it with Signature Version 4 for service execute-api (Client.connect does with sign=True)"


@dataclass(frozen=True, slots=True)
class AccessKey:
    """``allow``: patterns over the path behind ``/api/v1/``, where ``*`` is any text, ``/`` included; such as
    ``namespaces/billing/*``."""

    key_id: str
    secret: str
    allow: tuple[str, ...]

    def __repr__(self) -> str:
        return f"AccessKey({self.key_id!r}, allow={self.allow!r})"


class _Claim(NamedTuple):
    key: AccessKey
    region: str
    signed_headers: tuple[str, ...]
    signature: str
    date: str


class SignatureVerifier:
    """Of one server. ``check`` returns the refusal of a request, or the id of its key when it may pass."""

    def __init__(self, keys: Iterable[AccessKey], clock: Clock) -> None:
        self._keys = {key.key_id: key for key in keys}
        self._patterns = {key.key_id: [_pattern(text) for text in key.allow] for key in self._keys.values()}
        self._clock = clock
        self._started = clock.now()
        self._seen = _Seen()

    def check(self, method: str, raw_path: str, query: str, headers: Headers, body: bytes) -> ApiError | str:
        """``raw_path`` as it was sent, percent-encoded."""
        try:
            given = _texts(headers)
            claim = self._claim(given)
            signed_at = self._time(given, claim)
            self._verify(method, raw_path, query, given, body, claim)
            self._remember(claim, signed_at)
        except ApiError as refusal:
            return refusal
        path = raw_path.removeprefix("/api/v1/")
        if not any(pattern.fullmatch(path) for pattern in self._patterns[claim.key.key_id]):
            return PermissionDenied(
                f"access key {claim.key.key_id!r} may not call {raw_path!r}; an operator of this server grants it by a "
                "path pattern in the key's allow list"
            )
        return claim.key.key_id

    def _claim(self, given: Mapping[str, str]) -> _Claim:
        authorization = given.get("authorization", "")
        if not authorization:
            raise Unauthenticated(f"the request is not signed; {_HOW}")
        found = _AUTHORIZATION.fullmatch(authorization)
        if found is None or found["service"] != _SERVICE:
            raise Unauthenticated(f"the Authorization header is no signature for this server; {_HOW}")
        key = self._keys.get(found["key"])
        if key is None:
            raise Unauthenticated(
                f"access key {found['key']!r} is not known to this server; check it, or have it added"
            )
        names = tuple(found["headers"].split(";"))
        missing = _MUST_BE_SIGNED - set(names)
        if missing:
            raise Unauthenticated(f"the signature leaves out header {sorted(missing)[0]!r}; {_HOW}")
        return _Claim(key, found["region"], names, found["signature"], found["date"])

    def _time(self, given: Mapping[str, str], claim: _Claim) -> datetime:
        text = given.get("x-amz-date", "")
        try:
            signed_at = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            raise Unauthenticated(f"X-Amz-Date is {text[:40]!r}, not a time such as 20260131T120000Z; {_HOW}") from None
        now = self._clock.now()
        if abs(now - signed_at) > SKEW or not text.startswith(claim.date):
            raise Unauthenticated(
                f"the request was signed at {text}, and here it is {now:%Y%m%dT%H%M%SZ}: more than "
                f"{SKEW.total_seconds() / 60:.0f} minutes apart; set the clock of the machine that signs and sign again"
            )
        if signed_at <= self._started.replace(microsecond=0):
            # What was taken before is not remembered, so it might come a second time.
            raise Unavailable(
                f"the request was signed at {text}, before this server started; sign it again (or set the clock, if "
                "that of the machine that signs is behind)"
            )
        return signed_at

    def _verify(
        self, method: str, raw_path: str, query: str, given: Mapping[str, str], body: bytes, claim: _Claim
    ) -> None:
        claimed_hash = given.get("x-amz-content-sha256")
        if claimed_hash is not None and claimed_hash != hashlib.sha256(body).hexdigest():
            raise Unauthenticated("the body is not the one that was signed; send it unchanged")
        url = f"https://{given.get('host', '')}{raw_path}" + (f"?{query}" if query else "")
        signed = {name: given[name] for name in claim.signed_headers if name in given}
        request = AWSRequest(method, url, data=body, headers=signed)
        request.context["timestamp"] = given["x-amz-date"]
        verifier = SigV4Auth(Credentials(claim.key.key_id, claim.key.secret), _SERVICE, claim.region)
        to_sign = verifier.string_to_sign(request, verifier.canonical_request(request))
        if not hmac.compare_digest(verifier.signature(to_sign, request), claim.signature):
            raise Unauthenticated(
                "the signature does not fit the request: the secret key is another one, or the request was changed on "
                "its way; check the key, and that no proxy changes host, path or body"
            )

    def _remember(self, claim: _Claim, signed_at: datetime) -> None:
        now = self._clock.now()
        if not self._seen.add(claim.signature, signed_at, now):
            raise Unauthenticated("this signed request was sent before; sign every request anew")


class _Seen:
    """Signatures that were used, for as long as they would be good: in two halves, of which the older is dropped."""

    def __init__(self) -> None:
        self._new: set[str] = set()
        self._old: set[str] = set()
        self._turned: datetime | None = None

    def add(self, signature: str, signed_at: datetime, now: datetime) -> bool:
        """False when it is there. Raises Unavailable when there are too many."""
        if self._turned is None or now - self._turned > 2 * SKEW or now < self._turned:
            if self._turned is not None:
                self._old, self._new = self._new, set()
            self._turned = now
        if signature in self._new or signature in self._old:
            return False
        if len(self._new) >= MOST_REMEMBERED:
            raise Unavailable("this server has had too many requests in the last minutes; call again in a moment")
        self._new.add(signature)
        return True


def _texts(headers: Headers) -> dict[str, str]:
    """One value for each name; a name that came twice has both, as the signer saw them."""
    texts: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        texts[key] = f"{texts[key]},{text}" if key in texts else text
    return texts


def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(".*".join(re.escape(part) for part in text.removeprefix("/api/v1/").split("*")))
