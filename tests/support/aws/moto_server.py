"""One emulator per test session (with pytest-xdist: per worker), a process of its own so that its threads do not hold
up the code under test. Where ``AWS_ENDPOINT_URL`` is set, that endpoint is used instead, with the credentials
given there.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REGION = "us-east-1"
DUMMY_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "123456789012",
    "AWS_SECRET_ACCESS_KEY": "of-no-account",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""Credentials that are none, and no look at those of the person who runs the tests."""

_SCRIPT = Path(__file__).with_name("moto_process.py")


@contextmanager
def moto_server() -> Iterator[Mapping[str, str]]:
    """The environment in which clients find the emulator."""
    if given := os.environ.get("AWS_ENDPOINT_URL"):
        kept = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        yield {**({} if "AWS_ACCESS_KEY_ID" in kept else DUMMY_ENVIRONMENT), **kept, "AWS_ENDPOINT_URL": given}
        return
    process = subprocess.Popen(
        [sys.executable, str(_SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # moto asks no cloud for anything, but boto inside it must not find anybody's credentials either
        env={**os.environ, **DUMMY_ENVIRONMENT},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, "the emulator did not start; its own output says why"
        yield {**DUMMY_ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(port)}"}
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
