"""The script of the TypeScript SDK: installed by npm's lock, compiled, run by Node.

    python3 -m tests.temporal.polyglot.typescript     installs and compiles it, for runs that come later

This module needs the standard library only: CI calls it while what the product needs is installed.
"""

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from .toolchain import UNAVAILABLE, Unavailable, fetch, require

SOURCE = Path(__file__).parent / "typescript"
FOLDER = Path(tempfile.gettempdir()) / "stepwell-polyglot"
_MANIFESTS = ("package.json", "package-lock.json")


def command(address: str, *task_queue: str) -> list[str]:
    """In the folder that :func:`build` gave."""
    return ["node", "dist/main.js", address, *task_queue]


def build(folder: Path) -> Path:
    """Installs what the lock names and compiles the script, once for each state of their files: who builds the same at
    the same time, or something else, is not disturbed."""
    require("node", "npm")
    manifests = [SOURCE / name for name in _MANIFESTS]
    installed = folder / _digest(manifests)
    if not installed.exists():
        with _making(folder) as making:
            _install(manifests, making)
            _keep(making, installed)
    sources = [SOURCE / "tsconfig.json", *sorted((SOURCE / "src").iterdir())]
    compiled = installed / _digest(sources)
    if not compiled.exists():
        with _making(installed) as making:
            _compile(making)
            _keep(making, compiled)
    return compiled


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@contextlib.contextmanager
def _making(folder: Path) -> Iterator[Path]:
    """A folder in this one, which is removed unless it was kept under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=folder))
    try:
        yield making
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _install(manifests: Iterable[Path], folder: Path) -> None:
    for manifest in manifests:
        shutil.copy(manifest, folder)
    fetch(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"], folder)


def _compile(folder: Path) -> None:
    """Node and the compiler find packages in the folders above."""
    shutil.copytree(SOURCE / "src", folder / "src")
    shutil.copy(SOURCE / "tsconfig.json", folder)
    subprocess.run(["node", "../node_modules/typescript/bin/tsc"], cwd=folder, check=True)


def _keep(made: Path, place: Path) -> None:
    """Whole or not at all; another process may have been first, with the same."""
    try:
        made.rename(place)
    except OSError:
        if not place.exists():
            raise


def main() -> int:
    try:
        build(FOLDER / "typescript")
    except Unavailable as error:
        print(f"NOT TESTED: typescript, mixed: {error}")
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
