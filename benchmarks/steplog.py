"""The step that every peer runs, and the log that the harness reads: latencies come from it, not from the peer's words.

One line per happening, ``KIND workflow-id index a b time pid``, appended to ``$BENCH_LOG`` (O_APPEND, no fsync).
Kinds: X step body ran (a = its result, b = the previous result it was handed), S before a sleep, K after it, H message
handled, B process came up.
"""

import os
import random
import time

_descriptor: int | None = None


def log(kind: str, workflow_id: str, index: int = 0, a: int = 0, b: int = 0) -> None:
    global _descriptor
    if _descriptor is None:
        _descriptor = os.open(os.environ["BENCH_LOG"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.write(_descriptor, f"{kind} {workflow_id} {index} {a} {b} {time.time():.6f} {os.getpid()}\n".encode())


def step(workflow_id: str, index: int, previous: int) -> int:
    token = random.getrandbits(48)
    log("X", workflow_id, index, token, previous)
    return token
