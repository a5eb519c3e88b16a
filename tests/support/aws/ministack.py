"""MiniStack as a subprocess on a free port of this machine: AWS with functions, an API with IAM, and CloudFormation.

It lives in an environment of its own (``scripts/infra.py`` makes it), since it decides the version of botocore. Its
expressions' parser is memoised, because it reads a Query's condition anew for every row. Where it enforces access it
also speaks TLS, with a certificate of its own (made by the command openssl): what refuses anything else is served.
"""

import os
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT_KEY = "stepwell-root"
ROOT_SECRET = "secret-of-the-account"
REGION = "us-east-1"

_START = """
import functools, sys
import ministack.services.dynamodb as dynamodb
tokens = functools.lru_cache(4096)(lambda text, parse=dynamodb._tokenize: tuple(parse(text)))
dynamodb._tokenize = lambda text: list(tokens(text))
from ministack.app import main
sys.exit(main())
"""


class MiniStack:
    """One emulator. ``log`` is what it wrote, functions' output included."""

    def __init__(self, python: Path, *, enforces_access: bool = True) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="stepwell-ministack-")
        self.log = Path(self._folder.name) / "log"
        self.port = _free_port()
        self.enforces_access = enforces_access
        self.url = f"{'https' if enforces_access else 'http'}://127.0.0.1:{self.port}"
        self.certificate = Path(self._folder.name) / "ministack-tls" / "server.crt"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-c", _START],
                cwd=self._folder.name,
                env=self._variables(),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
        return {
            **kept,
            "HOME": self._folder.name,
            "TMPDIR": self._folder.name,
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            **({"AUTH": "true", "USE_SSL": "1"} if self.enforces_access else {}),
            "AWS_ACCESS_KEY_ID": ROOT_KEY,
            "AWS_SECRET_ACCESS_KEY": ROOT_SECRET,
            "LOG_LEVEL": "INFO",
            **self._trust(),  # of its functions
        }

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                context = ssl.create_default_context(cafile=str(self.certificate)) if self.enforces_access else None
                with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=5, context=context) as answer:
                    answer.read()
                    return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"MiniStack does not start:\n{self.text()[-4000:]}") from None
                time.sleep(0.05)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def variables(self, key: str = ROOT_KEY, secret: str = ROOT_SECRET) -> dict[str, str]:
        """For programs that are to use it, by default as the account's owner."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            **self._trust(),
        }

    def _trust(self) -> dict[str, str]:
        if not self.enforces_access:
            return {}
        return dict.fromkeys(("AWS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), str(self.certificate))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
