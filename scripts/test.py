"""Sets up (once) and runs the tests; arguments go to pytest, whose summary comes last."""

import sys

import environment

if __name__ == "__main__":
    sys.exit(environment.main(["runtime", "aws", "dev"], ["-m", "pytest", *sys.argv[1:]]))
