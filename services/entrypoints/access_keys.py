"""The file with the access keys of a server of one's own."""

import os
import stat
from pathlib import Path

import msgspec

from ..frontend.signatures import AccessKey

_LEAST_SECRET = 20
_EXAMPLE = '{"keys": [{"key_id": "AKTEAM", "secret": "…", "allow": ["system-info", "namespaces/billing/*"]}]}'


class KeysRefused(Exception):
    """``str(error)`` is a sentence for people. It shows no secret."""


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    key_id: str
    secret: str
    allow: tuple[str, ...]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    keys: tuple[_Key, ...]


def read_access_keys(path: Path) -> list[AccessKey]:
    """Raises KeysRefused when the file is not what it should be, or others than its owner can read it."""
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except OSError as error:
        raise KeysRefused(f"{path} cannot be read: {error.strerror}") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeysRefused(f"{path} holds secrets and can be read by others than its owner; chmod 600 {path}")
    try:
        found = msgspec.json.decode(data, type=_File).keys
    except msgspec.MsgspecError as error:
        raise KeysRefused(f"{path} is no file of access keys ({error}); write it like {_EXAMPLE}") from None
    if not found:
        raise KeysRefused(f"{path} has no keys, so nobody could call; write it like {_EXAMPLE}")
    names = [key.key_id for key in found]
    for key in found:
        if not key.key_id or names.count(key.key_id) > 1:
            raise KeysRefused(f"{path}: key_id {key.key_id!r} is empty or there twice; give each key a name of its own")
        if len(key.secret) < _LEAST_SECRET:
            raise KeysRefused(f"{path}: the secret of {key.key_id!r} is shorter than {_LEAST_SECRET} characters")
        if not key.allow:
            raise KeysRefused(
                f'{path}: {key.key_id!r} may call nothing; give it path patterns in allow, such as "*" for all'
            )
    return [AccessKey(key.key_id, key.secret, key.allow) for key in found]
