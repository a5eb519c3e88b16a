"""What a process imports before it can answer: ``python benchmarks/cold_start.py [--runs 5] [--heavy 12]``.

With ``--package build/functions/local`` (made by ``scripts/infra.py package local``) only CPU times of the functions,
from that folder and as Lambda has them: read-only, with the compiled files that are in it and without.

For each entry point, and for bare Python: wall and CPU time of a process that imports it and ends, in the median; CPU
time where our modules and everybody's have to be compiled first, as in a package without ``.pyc`` files; the number of
modules; and which packages take how much of the time by Python's own account, the shortest of all runs for each module.
Wall time depends on what else runs on the machine, CPU time much less.
"""

import argparse
import collections
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

ENTRY_POINTS = {
    "bare Python": "sys",
    "function frontend": "stepwell_server.entrypoints.aws_frontend",
    "function feed": "stepwell_server.entrypoints.aws_feed",
    "function timer-tick": "stepwell_server.entrypoints.aws_timer_tick",
    "function timers": "stepwell_server.entrypoints.aws_timers",
    "container": "stepwell_server.entrypoints.aws_server",
    "stepwell dev": "stepwell_server.entrypoints.dev",
    "embedded": "stepwell_server.entrypoints.embedded",
    "worker": "stepwell.worker",
}


class Figures(NamedTuple):
    wall_ms: float
    cpu_ms: float
    modules: int


class Importer:
    """Runs Python with its compiled files in a folder of ours, since the machine's settings may keep none."""

    def __init__(self, folder: str, runs: int) -> None:
        self._folder = folder
        self._runs = runs

    def run(self, *arguments: str, folder: str = "") -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "sdk"), ROOT])}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = folder or self._folder
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)

    def measure(self, module: str) -> Figures:
        source = f"import sys, {module}; print(len(sys.modules))"
        modules = int(self.run("-c", source).stdout)  # compiles what is not compiled yet
        took = [self._once(source) for _ in range(self._runs)]
        wall, cpu = (statistics.median(each) * 1_000 for each in zip(*took, strict=True))
        return Figures(round(wall), round(cpu), modules)

    def from_source(self, module: str) -> int:
        """CPU time, ms."""
        with tempfile.TemporaryDirectory() as empty:
            return round(self._once(f"import {module}", empty)[1] * 1_000)

    def _once(self, source: str, folder: str = "") -> tuple[float, float]:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        self.run("-c", source, folder=folder)
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def shares(self, module: str) -> list[tuple[str, float]]:
        """Packages, and the part of the import's time that their own modules take, largest first."""
        shortest: dict[str, int] = {}
        for _ in range(self._runs):
            for line in self.run("-X", "importtime", "-c", f"import {module}").stderr.splitlines():
                own, _, name = line.removeprefix("import time:").split("|")
                if own.strip().isdigit():
                    shortest[name] = min(shortest.get(name, int(own)), int(own))
        took: collections.Counter[str] = collections.Counter()
        for name, microseconds in shortest.items():
            took[_package(name.strip())] += microseconds
        return [(name, microseconds / took.total()) for name, microseconds in took.most_common()]


def _package(module: str) -> str:
    top = module.partition(".")[0]
    return "standard library" if top in sys.stdlib_module_names else top


def packaged(folder: str, runs: int) -> None:
    """Nothing of this environment is seen but the standard library, which has its compiled files in both cases."""
    with tempfile.TemporaryDirectory() as without:
        shutil.copytree(folder, without, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        for name, module in ENTRY_POINTS.items():
            if name.startswith("function"):
                took = [_cpu_from(each, module, runs) for each in (folder, without)]
                print(f"{name:20} {took[0]:6} ms CPU with compiled files, {took[1]:6} without", flush=True)


def _cpu_from(folder: str, module: str, runs: int) -> int:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    took = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-S", "-B", "-c", f"import {module}"]
        subprocess.run(command, env={**kept, "PYTHONPATH": folder}, cwd=folder, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(statistics.median(took) * 1_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--heavy", type=int, default=8, help="how many packages to name")
    parser.add_argument("--package", default="", help="a folder of functions, as Lambda has it")
    options = parser.parse_args()
    print(json.dumps({"load": os.getloadavg(), "cores": os.cpu_count(), "python": sys.version.split()[0]}))
    if options.package:
        packaged(options.package, options.runs)
        return
    with tempfile.TemporaryDirectory() as folder:
        importer = Importer(folder, options.runs)
        for name, module in ENTRY_POINTS.items():
            wall, cpu, modules = importer.measure(module)
            compiling = importer.from_source(module)
            print(f"{name:20} {wall:6} ms {cpu:6} ms CPU, {compiling:6} from source {modules:6} modules", flush=True)
            if module != "sys":
                heavy = [f"{package} {share:.0%}" for package, share in importer.shares(module)[: options.heavy]]
                print(f"{'':20} {', '.join(heavy)}", flush=True)


if __name__ == "__main__":
    main()
