"""The script of the Java SDK: Maven fetches what it needs, the JDK compiles and runs it."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from .steps import Step, Unavailable, run_script

SOURCE = Path(__file__).parent / "java"
_CLASSES, _CLASSPATH = "classes", "classpath.txt"


async def run(address: str, folder: Path) -> list[Step]:
    built = await asyncio.to_thread(build, folder / "java")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return await run_script(["java", quiet, "-cp", _classpath(built), "polyglot.Main", address], built)


def build(folder: Path) -> Path:
    """Fetches what ``pom.xml`` names, if Maven's own repository has it not, and compiles the script."""
    for tool in ("mvn", "javac", "java"):
        if shutil.which(tool) is None:
            raise Unavailable(f"the command `{tool}` is not there")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder)
    maven = ["mvn", "--batch-mode", "--quiet", "dependency:build-classpath", f"-Dmdep.outputFile={_CLASSPATH}"]
    fetched = subprocess.run(maven, cwd=folder, check=False)
    if fetched.returncode != 0:
        raise Unavailable(f"`mvn` ended with exit code {fetched.returncode}; its message is above")
    sources = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.java"))
    compiler = ["javac", "-Xlint:all,-path", "--release", "17", "-d", _CLASSES, "-cp", _classpath(folder), *sources]
    subprocess.run(compiler, cwd=folder, check=True)
    return folder


def _classpath(folder: Path) -> str:
    return os.pathsep.join([_CLASSES, (folder / _CLASSPATH).read_text(encoding="utf-8").strip()])
