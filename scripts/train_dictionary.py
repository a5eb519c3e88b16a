"""Trains the compression dictionary of stored records (``services/history/dictionary_1.zdict``).

A dictionary is part of the storage format: once a release has written files with it, it never changes. A better one
gets the next number and its own format byte in ``services/history/codec.py``. Samples are the commits of databases that
the engine wrote (``--database FILE``, any number; their host names and ids can end up in it, so take neutral ones) and
those that the storage tests make.
"""

import argparse
import random
import sqlite3
import sys
from pathlib import Path

import msgspec
import zstandard

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

TARGET = ROOT / "services" / "history" / "dictionary_1.zdict"
SIZE = 8 * 1024
WORKFLOW_TYPES = ("fulfil_order", "refund", "onboarding", "NightlyReport")

Buffer = bytes | bytearray | memoryview


def sample_parts(runs: int) -> list[Buffer]:
    """Head, events and item parts of hand-made runs, as plain msgpack."""
    from stepwell_server.history import codec
    from tests.support.sample_commits import SampleRun, sample_item

    parts: list[Buffer] = []
    for number in range(runs):
        # Each of its own worker: what only one process has in common must not take room in the dictionary.
        workflow_type = WORKFLOW_TYPES[number % len(WORKFLOW_TYPES)]
        run = SampleRun(number * 13 + 5, worker=str(number), workflow_type=workflow_type)
        for commit in run.commits():
            stored = codec.encode_commit(commit)
            parts += [codec.unpack(stored.head), codec.unpack(stored.events)]
        parts.append(msgspec.msgpack.encode(sample_item(run, version=1 + number % 2)))
    return parts


def database_parts(path: Path) -> list[Buffer]:
    """The same of a database that the engine wrote."""
    from stepwell_server.history import codec

    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    rows = connection.execute("SELECT head, events FROM commits UNION ALL SELECT item, NULL FROM activity_items")
    parts: list[Buffer] = [codec.unpack(part) for row in rows for part in row if part]
    connection.close()
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--runs", type=int, default=300, help="hand-made runs to add to the samples")
    options = parser.parse_args()
    if not TARGET.exists():
        TARGET.write_bytes(b"")
    parts = sample_parts(options.runs)
    for path in options.database:
        parts += database_parts(path)
    random.Random(1).shuffle(parts)
    dictionary = zstandard.train_dictionary(SIZE, parts, level=3)
    TARGET.write_bytes(dictionary.as_bytes())
    print(f"{TARGET.relative_to(ROOT)}: {len(dictionary.as_bytes())} bytes from {len(parts)} parts")


if __name__ == "__main__":
    main()
