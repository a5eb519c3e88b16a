"""Sets up (once) and runs the tests of the AWS adapters against an endpoint: LocalStack, MiniStack, or an account.

    python3 scripts/localstack.py [pytest options]               AWS_ENDPOINT_URL, or http://127.0.0.1:4566
    python3 scripts/localstack.py --ministack [pytest options]   a MiniStack that is started for the run; no Docker

Each test makes tables of its own; an account is left with them, so take one for trials.
"""

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

import environment

DEFAULT = "http://127.0.0.1:4566"
EMULATOR = environment.ROOT / ".venv-ministack"
SUITES = ("tests/contract", "tests/integration/aws", "tests/e2e/test_aws*.py", "tests/e2e/aws")
"""What is there of these; of the contracts only what is not SQLite's."""

UNREACHABLE = """{endpoint} does not answer: {error}
Start an emulator there (docker compose --file localstack/compose.yaml up --wait), name another by AWS_ENDPOINT_URL, or
say --ministack, which needs no Docker."""


def main(arguments: list[str]) -> int:
    try:
        if "--ministack" in arguments:
            return _on_ministack([each for each in arguments if each != "--ministack"])
        endpoint = os.environ.setdefault("AWS_ENDPOINT_URL", DEFAULT)
        if why := _unreachable(endpoint):
            print(UNREACHABLE.format(endpoint=endpoint, error=why), file=sys.stderr)
            return 2
        return _run(arguments)
    except environment.SetupError as error:
        print(f"Cannot set up: {error}", file=sys.stderr)
        return 2


def _on_ministack(arguments: list[str]) -> int:
    sys.path.insert(0, str(environment.ROOT))
    from tests.support.aws.ministack import MiniStack

    product = environment.ENVIRONMENT
    environment.use(EMULATOR)
    emulator = MiniStack(environment.ensure_pins("ministack"), enforces_access=False)
    environment.use(product)
    try:
        os.environ.update(emulator.variables())
        return _run(arguments)
    finally:
        emulator.stop()


def _run(arguments: list[str]) -> int:
    environment.ensure("runtime", "aws", "dev")
    named = [argument for argument in arguments if Path(argument.partition("::")[0]).exists()]
    suites = [] if named else [str(each) for suite in SUITES for each in sorted(environment.ROOT.glob(suite))]
    return environment.run(["-m", "pytest", "-k", "not sqlite", *arguments, *suites])


def _unreachable(endpoint: str) -> str:
    """Empty when something answers, whatever it says."""
    try:
        urllib.request.urlopen(endpoint, timeout=5).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
