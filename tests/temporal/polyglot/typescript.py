"""The script of the TypeScript SDK: installed by npm's lock, compiled, run by Node."""

import asyncio
import hashlib
import shutil
import subprocess
from pathlib import Path

from .steps import Step, Unavailable, run_script

SOURCE = Path(__file__).parent / "typescript"
_MANIFESTS = ("package.json", "package-lock.json")


async def run(address: str, folder: Path) -> list[Step]:
    built = await asyncio.to_thread(build, folder / "typescript")
    return await run_script(command(address), built)


def command(address: str, *task_queue: str) -> list[str]:
    """In the folder that :func:`build` gave."""
    return ["node", "dist/main.js", address, *task_queue]


def build(folder: Path) -> Path:
    """Installs what the lock names, if that is not there, and compiles the script."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise Unavailable(f"the command `{tool}` is not there")
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".installed"
    wanted = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in _MANIFESTS)).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        _install(folder)
        stamp.write_text(wanted)
    for name in ("src", "dist"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(SOURCE / "src", folder / "src")
    shutil.copy(SOURCE / "tsconfig.json", folder)
    subprocess.run(["node", "node_modules/typescript/bin/tsc"], cwd=folder, check=True)
    return folder


def _install(folder: Path) -> None:
    for name in _MANIFESTS:
        shutil.copy(SOURCE / name, folder)
    npm = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(npm, cwd=folder, check=False)
    if done.returncode != 0:
        raise Unavailable(f"`npm ci` ended with exit code {done.returncode}; its message is above")
