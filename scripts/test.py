"""Sets up (once) and runs the tests; arguments go to pytest, whose summary comes last.

All of them run in several processes, since many wait more than they compute; what is named runs in one. pytest-xdist
reads PYTEST_XDIST_AUTO_NUM_WORKERS, and -n as always (-n0 is one process).
"""

import os
import sys
from typing import List  # noqa: UP035  (an older Python must get as far as the message about its version)

import environment

PROCESSES = "PYTEST_XDIST_AUTO_NUM_WORKERS"
PER_CORE, AT_MOST = 2, 8
"""A process holds 250 MB, and what it asks of the engine others may wait for."""

# Who has run out of tests takes from the others: those that follow each other share what their folder has set up.
IN_SEVERAL_PROCESSES = ["-n", "auto", "--dist", "worksteal"]


def options(arguments: List[str]) -> List[str]:  # noqa: UP006
    """With nothing but options it is a run of all tests; -s is for who wants to watch one."""
    named = [argument for argument in arguments if not argument.startswith("-") or argument == "-s"]
    return arguments if named else IN_SEVERAL_PROCESSES + arguments


if __name__ == "__main__":
    # Hundreds of processes are started, and each would compile all modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault(PROCESSES, str(min(PER_CORE * (os.cpu_count() or 1), AT_MOST)))
    sys.exit(environment.main(["runtime", "aws", "temporal", "dev"], ["-m", "pytest", *options(sys.argv[1:])]))
