"""Writes requirements/*.txt anew: the pinned versions that scripts and CI install, without index addresses.

Needs uv. Run it after a change of dependencies in a pyproject.toml, or with --upgrade to move to the newest versions.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMON = ["--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--no-header", "--universal"]
COMMON += ["--python-version", "3.11", "--no-emit-package", "stepwell", "--no-emit-package", "stepwell-server"]


def compile_pins(output: str, inputs: list[str], options: list[str]) -> None:
    """One pinned file from its inputs, as ``uv pip compile`` resolves them."""
    command = ["uv", "pip", "compile", "--quiet", *inputs, *options, *COMMON, "--output-file", f"requirements/{output}"]
    subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, check=True)


if __name__ == "__main__":
    # The widest set first: aioboto3 decides the versions of much that the others share.
    compile_pins("aws.txt", ["pyproject.toml", "sdk/pyproject.toml"], ["--extra", "aws"])
    compile_pins("runtime.txt", ["pyproject.toml", "sdk/pyproject.toml"], ["--constraints", "requirements/aws.txt"])
    beside_aws = ["--constraints", "requirements/aws.txt"]
    compile_pins("temporal.txt", ["pyproject.toml", "sdk/pyproject.toml"], ["--extra", "temporal", *beside_aws])
    compile_pins("dev.txt", ["--group", "dev"], ["--constraints", "requirements/aws.txt"])
    compile_pins("build.txt", ["requirements/build.in"], ["--constraints", "requirements/dev.txt"])
    # Beside the product (scripts/infra.py), and the emulator alone: it decides the version of botocore.
    beside = ["--constraints", "requirements/aws.txt", "--constraints", "requirements/dev.txt"]
    compile_pins("infra.txt", ["requirements/infra.in"], beside)
    compile_pins("ministack.txt", ["requirements/ministack.in"], [])
    compile_pins("temporal-server.txt", ["requirements/temporal-server.in"], [])
