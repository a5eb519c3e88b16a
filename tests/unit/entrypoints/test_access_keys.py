"""The file of access keys: what in it is of the Temporal gateway (keys that sign: ``tests/e2e/test_server.py``)."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from stepwell_server.entrypoints.access_keys import AccessKeys, KeysRefused, read_access_keys
from stepwell_server.frontend.roles import OPERATIONS
from stepwell_server.temporal_gateway.access import Grant
from tests.support.processes import ROOT

HASH = sha256(b"key").hexdigest()
COLONS = ":".join(HASH[at : at + 2].upper() for at in range(0, 64, 2))
GRANTED = {"name": "billing", "namespaces": ["billing"], "roles": ["worker"]}


def read(folder: Path, **entries: Any) -> AccessKeys:
    path = folder / "keys.json"
    path.write_text(json.dumps(entries))
    path.chmod(0o600)
    return read_access_keys(path)


def test_keys_and_certificates_have_what_they_reach(tmp_path: Path) -> None:
    certificates = [{**GRANTED, "subject": "billing"}, {**GRANTED, "name": "shop", "sha256": COLONS}]
    found = read(tmp_path, api_keys=[{**GRANTED, "sha256": HASH}], certificates=certificates)
    (key,), (named, printed) = found.api_keys, found.certificates
    assert key.grant == Grant("API key 'billing'", ("billing",), ("worker",))
    assert named.subject == "billing" and printed.sha256 == key.sha256 == bytes.fromhex(HASH)
    assert found.gateway_access().caller([("authorization", "Bearer key")], {}) is key.grant


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        ("api_keys", {"sha256": "the key itself"}, "64 hexadecimal digits"),
        ("api_keys", {"sha256": sha256(b"").hexdigest()}, "of no characters at all"),
        ("api_keys", {"roles": ["king"]}, "Invalid enum value 'king'.*roles are .*worker"),
        ("api_keys", {"namespaces": [" billing"]}, "space around a name"),
        ("api_keys", {"roles": []}, "may call nothing"),
        ("api_keys", {"namespaces": [""]}, "may call nothing"),
        ("api_keys", {"name": ""}, "empty or there twice"),
        ("certificates", {}, "both or neither"),
        ("certificates", {"subject": "CN=billing"}, "common name alone"),
        ("certificates", {"subject": "b", "sha256": HASH}, "both or neither"),
        ("certificates", {"sha256": "12:34"}, "64 hexadecimal digits"),
    ],
)
def test_what_is_not_right_is_named(tmp_path: Path, kind: str, changes: dict[str, Any], says: str) -> None:
    entry = {**GRANTED, **({"sha256": HASH} if kind == "api_keys" else {}), **changes}
    with pytest.raises(KeysRefused, match=says) as refused:
        read(tmp_path, **{kind: [entry]})
    assert "the key itself" not in str(refused.value)


def test_one_key_or_subject_is_one_entry(tmp_path: Path) -> None:
    with pytest.raises(KeysRefused, match="there twice"):
        read(tmp_path, api_keys=[{**GRANTED, "sha256": HASH}, {**GRANTED, "name": "other", "sha256": COLONS}])
    with pytest.raises(KeysRefused, match="there twice"):
        read(tmp_path, certificates=[{**GRANTED, "subject": "b"}, {**GRANTED, "name": "other", "subject": "b"}])


def test_what_the_guide_shows_is_what_a_server_reads(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guide-temporal.md").read_text(encoding="utf-8")
    (line,) = [line for line in guide.splitlines() if line.startswith("    {")]
    found = read(tmp_path, **json.loads(line))
    assert (len(found.api_keys), len(found.certificates)) == (1, 1)
    guessed = ("", "1", "key", "secret", "password", "billing", "test", "example")
    assert found.api_keys[0].sha256 not in [sha256(word.encode()).digest() for word in guessed]
    assert all(f"`{role}`" in guide for role in OPERATIONS)
