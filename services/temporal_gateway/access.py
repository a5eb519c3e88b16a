"""Who calls, by an API key or a client certificate, and what they may: namespaces, and roles as over HTTP.

An RPC needs what the operation of the API needs that it stands for (``permissions``). Its namespace is checked before
anything is done, and once more wherever a handler calls the engine.
"""

import hashlib
import hmac
import re
import ssl
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from stepwell.api import requests as r
from stepwell.api.errors import PermissionDenied, Unauthenticated
from stepwell.api.operations import LIST_NAMESPACES, Operation

from ..common.principals import acting
from .gateway import Calls
from .permissions import NEEDS, TOLD_APART

Req = TypeVar("Req")
Resp = TypeVar("Resp")

Metadata = Iterable[tuple[str, str | bytes]]
AuthContext = Mapping[str, Iterable[bytes]]
"""What gRPC knows of the certificate that the other side has shown, and has been verified."""

_BY_KEY = "an API key (Client.connect(..., api_key=...))"
_BY_CERTIFICATE = "a client certificate (client_cert of TLSConfig)"
_WHERE = "the file of --keys"
_INDEXED_BY = 4
"""Bytes of a key's hash by which it is found; the whole is compared in constant time."""


class Tls(NamedTuple):
    """PEM texts. With ``client_ca``, whoever connects shows a certificate of its."""

    chain: bytes
    key: bytes
    client_ca: bytes | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """``who`` is shown to people. ``namespaces``: names, in which ``*`` is any text."""

    who: str
    namespaces: tuple[str, ...]
    roles: tuple[str, ...]

    def check_namespace(self, namespace: str) -> None:
        """Raises PermissionDenied."""
        if not any(_pattern(text).fullmatch(namespace) for text in self.namespaces):
            raise PermissionDenied(
                f"{self.who} does not reach namespace {namespace[:200]!r}; name another, or have an operator of this "
                f"server add it to the namespaces of that entry in {_WHERE}"
            )


class ApiKey(NamedTuple):
    sha256: bytes
    grant: Grant


class ClientCertificate(NamedTuple):
    """Known by ``subject``, its common name or one of its alternative names, or by ``sha256``, its fingerprint."""

    subject: str
    sha256: bytes
    grant: Grant


class Access:
    """Of one server. ``roles``: the operations that each role may call."""

    def __init__(
        self,
        api_keys: Sequence[ApiKey],
        certificates: Sequence[ClientCertificate],
        roles: Mapping[Any, AbstractSet[str]],
    ) -> None:
        self._roles = roles
        self._keys: dict[bytes, list[ApiKey]] = {}
        for key in api_keys:
            self._keys.setdefault(key.sha256[:_INDEXED_BY], []).append(key)
        self._subjects = {each.subject: each.grant for each in certificates if each.subject}
        self._fingerprints = {each.sha256: each.grant for each in certificates if each.sha256}
        ways = [(api_keys, _BY_KEY), (certificates, _BY_CERTIFICATE)]
        self._ways = " or ".join(words for known, words in ways if known)

    def caller(self, metadata: Metadata, peer: AuthContext) -> Grant:
        """By the API key if one was sent, else by the certificate. Raises Unauthenticated."""
        authorization = next((text for name, text in metadata if name == "authorization"), "")
        if authorization:
            return self._by_key(authorization)
        if self._subjects or self._fingerprints:
            shown = next(iter(peer.get("x509_pem_cert", ())), b"")
            if shown:
                return self._by_certificate(shown, peer)
        raise Unauthenticated(f"the call has no credentials that this server takes; connect with {self._ways}")

    def _by_key(self, authorization: str | bytes) -> Grant:
        text = authorization if isinstance(authorization, bytes) else authorization.encode(errors="replace")
        scheme, _, key = text.partition(b" ")
        if scheme.lower() != b"bearer":
            raise Unauthenticated(
                f"the authorization of the call is no bearer key; connect with {_BY_KEY}, which sends it as one"
            )
        if not key.strip():
            raise Unauthenticated(f"the API key of the call is empty; connect with {_BY_KEY}")
        digest = hashlib.sha256(key.strip()).digest()
        for known in self._keys.get(digest[:_INDEXED_BY], ()):
            if hmac.compare_digest(known.sha256, digest):
                return known.grant
        raise Unauthenticated(
            f"the API key is not known to this server; check it, or have an operator add its SHA-256 to {_WHERE}"
        )

    def _by_certificate(self, shown: bytes, peer: AuthContext) -> Grant:
        fingerprint = _fingerprint(shown)
        found = self._fingerprints.get(fingerprint)
        if found is not None:
            return found
        names = [*peer.get("x509_common_name", ()), *peer.get("x509_subject_alternative_name", ())]
        for name in names:
            found = self._subjects.get(name.decode(errors="replace"))
            if found is not None:
                return found
        raise Unauthenticated(
            f"the client certificate with SHA-256 fingerprint {fingerprint.hex()} is not known to this server; have an "
            f"operator add its subject or fingerprint to the certificates in {_WHERE}, or connect with an API key"
        )

    def check_role(self, grant: Grant, rpc: str) -> None:
        """Raises PermissionDenied."""
        self._check(grant, NEEDS.get(rpc, frozenset()), rpc)

    def check_operation(self, grant: Grant, operation: str) -> None:
        """Of what the request has turned out to be. Raises PermissionDenied."""
        if operation in TOLD_APART:
            self._check(grant, frozenset({operation}), operation)

    def _check(self, grant: Grant, needs: AbstractSet[str], what: str) -> None:
        if not any(needs & self._roles[role] for role in grant.roles):
            able = sorted(role for role, operations in self._roles.items() if needs & operations)
            raise PermissionDenied(
                f"{grant.who} may not call {what}: that takes one of the roles {', '.join(able)}; have an operator of "
                f"this server add one to the roles of that entry in {_WHERE}"
            )


class WithinNamespaces:
    """The calls of one grant: what a handler asks for on its way stays inside its namespaces too."""

    def __init__(self, calls: Calls, grant: Grant, access: Access) -> None:
        self._calls = calls
        self._grant = grant
        self._access = access

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        self._access.check_operation(self._grant, operation.name)
        namespace = getattr(request, "namespace", None)
        if namespace is not None:
            self._grant.check_namespace(namespace)
        with acting(self._grant.who):
            if isinstance(request, r.ListNamespacesRequest):
                listed: Any = await self._listed(request)
                return listed  # type: ignore[no-any-return]
            return await self._calls.call(operation, request)

    async def _listed(self, request: r.ListNamespacesRequest) -> r.ListNamespacesResponse:
        """The first page with any that are reached. The name behind which the next one begins is of those too: it can
        be read off the token."""
        while True:
            answer = await self._calls.call(LIST_NAMESPACES, request)
            reached = tuple(filter(self._reached, answer.namespaces))
            token = answer.next_page_token
            if reached or not token:
                token = reached[-1].name.encode() if reached and token else b""
                return msgspec.structs.replace(answer, namespaces=reached, next_page_token=token)
            request = msgspec.structs.replace(request, next_page_token=token)

    async def undelivered(self, response: Any) -> None:
        await self._calls.undelivered(response)

    def _reached(self, info: Any) -> bool:
        try:
            self._grant.check_namespace(info.name)
        except PermissionDenied:
            return False
        return True


@lru_cache(maxsize=1_024)
def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)


@lru_cache(maxsize=1_024)
def _fingerprint(pem: bytes) -> bytes:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode("ascii").strip("\x00\n") + "\n")).digest()
