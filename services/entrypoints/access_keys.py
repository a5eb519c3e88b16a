"""The file with the access keys of a server of one's own: who may call over HTTP, and who through the Temporal gateway.

API keys are there as hashes alone, so whoever reads the file cannot call with them; the secrets of ``keys`` are needed
themselves, to verify signatures.
"""

import os
import re
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..frontend.roles import OPERATIONS, Role
from ..frontend.signatures import AccessKey
from ..temporal_gateway.access import Access, ApiKey, ClientCertificate, Grant

_LEAST_SECRET = 20
_EXAMPLE = (
    '{"keys": [{"key_id": "AKTEAM", "secret": "…", "allow": ["system-info", "namespaces/billing/*"]}]}, and for '
    'Temporal\'s SDKs "api_keys": [{"name": "billing", "sha256": "…", "namespaces": ["billing"], "roles": ["worker"]}]'
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OF_NOTHING = sha256(b"").digest()
_DISTINGUISHED = re.compile(r"\s*(subject\s*=|/?[A-Za-z]{1,2}\s*=)")
"""How openssl shows a whole subject, of which a name alone is meant."""


class KeysRefused(Exception):
    """``str(error)`` is a sentence for people. It shows no secret."""


class AccessKeys(NamedTuple):
    """``keys`` sign requests over HTTP; the others are of the Temporal gateway."""

    keys: tuple[AccessKey, ...] = ()
    api_keys: tuple[ApiKey, ...] = ()
    certificates: tuple[ClientCertificate, ...] = ()

    def gateway_access(self) -> Access:
        return Access(self.api_keys, self.certificates, OPERATIONS)


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    key_id: str
    secret: str
    allow: tuple[str, ...]


class _Granted(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    namespaces: tuple[str, ...]
    roles: tuple[Role, ...]


class _ApiKey(_Granted, forbid_unknown_fields=True):
    sha256: str


class _Certificate(_Granted, forbid_unknown_fields=True):
    subject: str = ""
    sha256: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    keys: tuple[_Key, ...] = ()
    api_keys: tuple[_ApiKey, ...] = ()
    certificates: tuple[_Certificate, ...] = ()


def read_access_keys(path: Path) -> AccessKeys:
    """Raises KeysRefused when the file is not what it should be, or others than its owner can read it."""
    found = _read(path)
    try:
        if not found.keys and not found.api_keys and not found.certificates:
            raise KeysRefused(f"it has no keys, so nobody could call; write it like {_EXAMPLE}")
        return AccessKeys(
            tuple(_keys(found.keys)), tuple(_api_keys(found.api_keys)), tuple(_certificates(found.certificates))
        )
    except KeysRefused as error:
        raise KeysRefused(f"{path}: {error}") from None


def _read(path: Path) -> _File:
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except OSError as error:
        raise KeysRefused(f"{path} cannot be read: {error.strerror}") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeysRefused(f"{path} holds secrets and can be read by others than its owner; chmod 600 {path}")
    try:
        return msgspec.json.decode(data, type=_File)
    except msgspec.MsgspecError as error:
        roles = f"; roles are {', '.join(OPERATIONS)}" if ".roles" in str(error) else ""
        raise KeysRefused(f"{path} is no file of access keys ({error}{roles}); write it like {_EXAMPLE}") from None


def _keys(found: tuple[_Key, ...]) -> Iterable[AccessKey]:
    _need_names("key_id", [key.key_id for key in found])
    for key in found:
        if len(key.secret) < _LEAST_SECRET:
            raise KeysRefused(f"the secret of {key.key_id!r} is shorter than {_LEAST_SECRET} characters")
        if not key.allow:
            raise KeysRefused(f'{key.key_id!r} may call nothing; give it path patterns in allow, such as "*" for all')
        yield AccessKey(key.key_id, key.secret, key.allow)


def _api_keys(found: tuple[_ApiKey, ...]) -> Iterable[ApiKey]:
    _need_names("name", [key.name for key in found])
    hashes = [_hash(key.sha256, key.name, "of the key's characters") for key in found]
    _need_names("sha256 of API keys", [digest.hex() for digest in hashes])
    for key, digest in zip(found, hashes, strict=True):
        if digest == _OF_NOTHING:
            raise KeysRefused(
                f"the sha256 of {key.name!r} is that of no characters at all, such as of a variable that was not set; "
                "make a key first, and give its hash"
            )
        yield ApiKey(digest, _grant(key, f"API key {key.name!r}"))


def _certificates(found: tuple[_Certificate, ...]) -> Iterable[ClientCertificate]:
    _need_names("name", [each.name for each in found])
    known: list[str] = []
    for each in found:
        if bool(each.subject) == bool(each.sha256):
            raise KeysRefused(
                f"{each.name!r} has both or neither of subject and sha256; give it a subject (a name of it), "
                "or the sha256 of the certificate (openssl x509 -fingerprint -sha256)"
            )
        if _DISTINGUISHED.match(each.subject):
            raise KeysRefused(
                f"the subject of {each.name!r} is {each.subject!r}; give its common name alone, without the letters "
                "and the = before it, or one of its alternative names"
            )
        digest = _hash(each.sha256, each.name, "fingerprint of a certificate") if each.sha256 else b""
        known.append(each.subject or digest.hex())
        _need_names("subject or sha256", known)
        yield ClientCertificate(each.subject, digest, _grant(each, f"client certificate {each.name!r}"))


def _need_names(what: str, names: list[str]) -> None:
    for name in names:
        if not name or names.count(name) > 1:
            raise KeysRefused(f"{what} {name!r} is empty or there twice; give each entry one of its own")


def _hash(text: str, name: str, of_what: str) -> bytes:
    plain = text.replace(":", "").lower()
    if not _SHA256.fullmatch(plain):
        # What stands there may be the key itself.
        raise KeysRefused(
            f"the sha256 of {name!r} is not the 64 hexadecimal digits of the SHA-256 {of_what}; docs/guide-temporal.md "
            "has the command that shows them"
        )
    return bytes.fromhex(plain)


def _grant(found: _Granted, who: str) -> Grant:
    if not found.namespaces or not all(found.namespaces) or not found.roles:
        raise KeysRefused(
            f'{who} may call nothing; give it namespaces, such as ["billing"] or ["*"] for all, and roles out of '
            f"{', '.join(OPERATIONS)}"
        )
    spaced = next((name for name in found.namespaces if name != name.strip()), None)
    if spaced is not None:
        raise KeysRefused(
            f"{who} has namespace {spaced!r}, with space around a name, which no namespace has; take it away"
        )
    return Grant(who, found.namespaces, found.roles)
