"""Sets up (once) and runs all checks but the tests: format, lint, types, direction of imports."""

import sys

import environment

CHECKS = (
    ["-m", "ruff", "format", "--check", "."],
    ["-m", "ruff", "check", "."],
    ["-m", "mypy"],
    ["-c", "from importlinter.cli import lint_imports_command as lint_imports; lint_imports()", "--no-logo"],
)


def main() -> int:
    """Runs every check, also after one has failed; the exit code is that of the first that failed."""
    try:
        environment.ensure("runtime", "aws", "temporal", "dev")
    except environment.SetupError as error:
        print(f"Cannot set up: {error}", file=sys.stderr)
        return 2
    failed = 0
    for check in CHECKS:
        print(f"» {' '.join(check[1:3] if check[0] == '-m' else ['lint-imports'])}", flush=True)
        code = environment.run(check)
        failed = failed or code
    return failed


if __name__ == "__main__":
    sys.exit(main())
