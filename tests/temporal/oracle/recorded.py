"""What Temporal's server made of some programs, kept here, so that CI can compare the gateway without that server.

``python -m tests.temporal.oracle --seeds 0-8 --record`` makes it anew.
"""

import gzip
import json
from pathlib import Path

from .examining import Normal
from .programs import Program, generate

FOLDER = Path(__file__).with_name("recorded")


def record(seed: int, normal: Normal) -> None:
    """Raises ``ValueError`` for a program that did not come to its end."""
    if normal["problem"]:
        raise ValueError(f"seed {seed}: {normal['problem']}")
    FOLDER.mkdir(exist_ok=True)
    kept = {"program": generate(seed), "normal": normal}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    (FOLDER / f"{seed}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def seeds() -> list[int]:
    return sorted(int(path.name.partition(".")[0]) for path in FOLDER.glob("*.json.gz"))


def read(seed: int) -> tuple[Program, Normal]:
    """The program as it was when it was recorded, and what came of it."""
    kept = json.loads(gzip.decompress((FOLDER / f"{seed}.json.gz").read_bytes()))
    return kept["program"], kept["normal"]
