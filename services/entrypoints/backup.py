"""``stepwell backup``: a consistent copy of a database file, also while its owner runs.

The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.backup``.
"""

import argparse
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ..adapters.embedded.backup import back_up, part_of
from ..adapters.embedded.connection import open_read_only
from ..adapters.embedded.errors import DatabaseRefused
from .command_lines import Parser
from .dev import DEFAULT_DATABASE
from .serving import REFUSED

_EVERY = 0.2
"""Seconds between two looks at how far it is."""

_CELLS = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 when the copy is complete and on disk, 3 when it could not be made."""
    options = _parser().parse_args(None if arguments is None else list(arguments))
    source = Path(options.db).expanduser().resolve()
    target = Path(options.target).expanduser().resolve()
    try:
        connection = open_read_only(source)
        try:
            with _progress(source, target):
                back_up(connection, target)
        finally:
            connection.close()
    except DatabaseRefused as error:
        sys.stderr.write(f"Error: {error}\n")
        return REFUSED
    sys.stdout.write(f"{source} is copied to {target}, as of now ({target.stat().st_size:,} bytes)\n")
    return 0


@contextmanager
def _progress(source: Path, target: Path) -> Iterator[None]:
    """How far the copy is, on standard error, when that is a terminal. The copy itself is one step of SQLite."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    watching = threading.Thread(target=watch, args=(source, part_of(target), over, sys.stderr), daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def watch(source: Path, part: Path, over: threading.Event, to: TextIO) -> None:
    """Writes one moving line until it is ``over``, and takes it away again."""
    written = False
    while not over.wait(_EVERY):
        try:
            whole, so_far = source.stat().st_size, part.stat().st_size
        except OSError:
            continue
        filled = min(so_far * _CELLS // max(whole, 1), _CELLS)
        to.write(f"\r  [{'#' * filled}{'.' * (_CELLS - filled)}] {so_far:,} of about {whole:,} bytes")
        to.flush()
        written = True
    if written:
        to.write("\r\x1b[K")
        to.flush()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="stepwell backup",
        description="Copy a database file while its engine runs. The copy is a database like any other: "
        "start `stepwell dev --db COPY` on it to restore.",
    )
    parser.add_argument(
        "--db", metavar="FILE", default=DEFAULT_DATABASE, help=f"default: {DEFAULT_DATABASE} in this directory"
    )
    parser.add_argument("target", metavar="COPY", help="a file that does not exist yet")
    return parser
