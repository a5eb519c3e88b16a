"""Sets up (once) and runs any Python command with all development tools: ``scripts/run.py -m mypy``."""

import sys

import environment

if __name__ == "__main__":
    sys.exit(environment.main(["runtime", "dev"], sys.argv[1:]))
