"""The script of the Java SDK: Maven fetches what it needs, the JDK compiles and runs it."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from .steps import Step, run_script
from .toolchain import fetch, require

SOURCE = Path(__file__).parent / "java"
_CLASSES, _CLASSPATH = "classes", "classpath.txt"


async def run(address: str, folder: Path) -> list[Step]:
    built = await asyncio.to_thread(build, folder / "java")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return await run_script(["java", quiet, "-cp", _classpath(built), "polyglot.Main", address], built)


def build(folder: Path) -> Path:
    """Fetches what ``pom.xml`` names, if Maven's own repository has it not, and compiles the script."""
    require("mvn", "javac", "java")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder)
    fetch(["mvn", "dependency:build-classpath", "--batch-mode", "--quiet", f"-Dmdep.outputFile={_CLASSPATH}"], folder)
    sources = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.java"))
    compiler = ["javac", "-Xlint:all,-path", "--release", "17", "-d", _CLASSES, "-cp", _classpath(folder), *sources]
    subprocess.run(compiler, cwd=folder, check=True)
    return folder


def _classpath(folder: Path) -> str:
    return os.pathsep.join([_CLASSES, (folder / _CLASSPATH).read_text(encoding="utf-8").strip()])
