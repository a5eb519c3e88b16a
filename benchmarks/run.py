"""One command for all benchmarks: sets up the peers, runs every workload side by side and prints medians.

    python benchmarks/run.py [--peers stepwell-sqlite,stepwell-http,dbos-sqlite,restate-python] [--workloads W1,W2,…]
                             [--runs 3] [--scale 1.0]

Peers get an environment of their own below ``$BENCH_DIR`` (default ``~/.cache/stepwell-bench``) on first use, from the
Python and npm package registries. What cannot be set up is named and left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASE = Path(os.environ.get("BENCH_DIR", Path.home() / ".cache" / "stepwell-bench"))


def _pinned(name: str) -> list[str]:
    return ["--requirement", str(HERE.parent / "requirements" / f"{name}.txt")]


PACKAGES = {
    "dbos-sqlite": ("dbos_sqlite.py", ["dbos==3.4.0", "psutil"]),
    "restate-python": (
        "restate_python.py",
        ["restate-sdk[serde]==1.3.0", "hypercorn==0.18.0", "aiohttp", "psutil"],
    ),
    "stepwell-sqlite": ("stepwell_sqlite.py", None),
    "stepwell-http": ("stepwell_http.py", None),
    "stepwell-unfused": ("stepwell_unfused.py", None),
    "stepwell-gateway": ("stepwell_gateway.py", None),
    "temporal-dev": ("temporal_dev.py", [*_pinned("temporal"), *_pinned("temporal-server"), "psutil"]),
}
RESTATE_SERVER = "@restatedev/restate-server@1.7.12"
HIDDEN = {"peer", "workload", "run", "foreign_cores", "took_s", "missing"}
Row = dict[str, object]


def python_for(peer: str) -> str:
    """The interpreter that has the peer installed; Stepwell's own is the one that runs this."""
    packages = PACKAGES[peer][1]
    if packages is None:
        return sys.executable
    folder = BASE / peer.split("-")[0]
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    if peer == "restate-python" and not (BASE / "restate-server" / "node_modules").exists():
        (BASE / "restate-server").mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", RESTATE_SERVER]
        subprocess.run(command, cwd=BASE / "restate-server", check=True, stdout=subprocess.DEVNULL)
    return str(python)


def run_rows(command: list[str]) -> list[Row]:
    """Runs a program that prints JSON lines, passes them through and returns them."""
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            rows.append(json.loads(line))
    return rows


def summary(rows: list[Row]) -> str:
    """Medians per workload and figure, peers side by side, as a Markdown table."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    peers: list[str] = []
    for row in rows:
        peer = str(row["peer"])
        if peer not in peers:
            peers.append(peer)
        for name, value in row.items():
            if name not in HIDDEN and isinstance(value, int | float):
                values[str(row["workload"]), name][peer].append(value)
    lines = ["| workload | figure | " + " | ".join(peers) + " |", "|---|---|" + "---|" * len(peers)]
    for (workload, name), by_peer in sorted(values.items()):
        cells = [f"{statistics.median(by_peer[p]):g}" if by_peer.get(p) else "" for p in peers]
        lines.append(f"| {workload} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peers", default=",".join(["stepwell-sqlite", "stepwell-http", "dbos-sqlite", "restate-python"])
    )
    parser.add_argument("--workloads", default="W1,W2,W3,W4,W5,W6,W7,W8")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    rows = run_rows([sys.executable, str(HERE / "floor.py")])
    for peer in arguments.peers.split(","):
        try:
            python = python_for(peer)
        except (subprocess.CalledProcessError, OSError) as error:
            sys.stderr.write(f"{peer}: left out, it could not be set up ({error})\n")
            continue
        program = str(HERE / "peers" / PACKAGES[peer][0])
        options = ["--runs", str(arguments.runs), "--scale", str(arguments.scale)]
        rows += run_rows([python, program, arguments.workloads, *options])
    sys.stdout.write("\n" + summary(rows) + "\n")


if __name__ == "__main__":
    main()
