"""What the harness needs of an engine under test; each file in ``peers/`` is one."""

import os
import shutil
import subprocess

from processes import cpu_seconds, disk_bytes, kill_tree

BASE = os.environ.get("BENCH_DIR", os.path.expanduser("~/.cache/stepwell-bench"))
Line = tuple[str, str, int, int, int, float, int]


class Peer:
    """Workflow kinds, the same for all: ``seq`` n steps in a row (returns the results when n <= 3), ``fan`` n steps at
    once, ``timer`` sleeps n seconds, ``sig`` takes n messages."""

    name = "?"
    embedded = False
    """The engine runs in the client's process; then W7 and W8 kill a child that runs it."""

    def __init__(self) -> None:
        self.directory = f"{BASE}/data/{self.name}"
        self.log = os.environ.setdefault("BENCH_LOG", f"{BASE}/steps-{self.name}.log")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        os.makedirs(BASE, exist_ok=True)

    async def up(self, *, fresh: bool) -> None:
        raise NotImplementedError

    async def down(self) -> None:
        self.kill_all()

    async def start(self, kind: str, workflow_id: str, n: int) -> None:
        raise NotImplementedError

    async def wait(self, workflow_id: str) -> object:
        raise NotImplementedError

    async def signal(self, workflow_id: str, index: int) -> None:
        raise NotImplementedError

    async def start_worker(self) -> None:
        raise NotImplementedError

    async def start_server(self, *, fresh: bool) -> None:
        raise NotImplementedError

    async def reconnect(self) -> None:
        """Make clients usable again after the server was killed and started."""

    # --- for the harness

    def pids(self, prefix: str) -> list[int]:
        return [p.pid for key, p in self.processes.items() if key.startswith(prefix)]

    def cpu(self, prefix: str = "") -> float:
        return cpu_seconds(self.pids(prefix))

    def disk(self) -> int:
        return disk_bytes(self.directory)

    def spawn(
        self, key: str, command: list[str], env: dict[str, str] | None = None, cwd: str | None = None
    ) -> subprocess.Popen[bytes]:
        with open(f"{BASE}/out-{self.name}-{key}.log", "ab") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=out, start_new_session=True, cwd=cwd, env={**os.environ, **(env or {})}
            )
        self.processes[key] = process
        return process

    def kill(self, key: str) -> None:
        process = self.processes.pop(key, None)
        if process is not None:
            kill_tree(process.pid)
            process.wait()

    def kill_all(self) -> None:
        for key in list(self.processes):
            self.kill(key)

    def fresh_directory(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)

    def truncate_log(self) -> None:
        with open(self.log, "w"):
            pass

    def lines(self, kind: str | None = None) -> list[Line]:
        with open(self.log) as log:
            return [line for text in log if (line := parse(text)) is not None and kind in (None, line[0])]


def parse(text: str) -> Line | None:
    parts = text.split()
    if len(parts) != 7:
        return None
    return parts[0], parts[1], int(parts[2]), int(parts[3]), int(parts[4]), float(parts[5]), int(parts[6])


class Tail:
    """Reads a growing log piece by piece, so that polling it stays cheap."""

    def __init__(self, path: str) -> None:
        self._file = open(path)
        self._rest = ""

    def new(self) -> list[Line]:
        self._rest += self._file.read()
        *whole, self._rest = self._rest.split("\n")
        return [line for text in whole if (line := parse(text)) is not None]
