"""``stepwell backup``: a consistent copy of a database file, also while its owner runs.

The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.backup``.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..adapters.embedded.backup import back_up
from ..adapters.embedded.connection import open_read_only
from ..adapters.embedded.errors import DatabaseRefused
from .dev import DEFAULT_DATABASE
from .serving import REFUSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 when the copy is complete and on disk, 3 when it could not be made."""
    options = _parser().parse_args(None if arguments is None else list(arguments))
    source = Path(options.db).expanduser().resolve()
    target = Path(options.target).expanduser().resolve()
    try:
        connection = open_read_only(source)
        try:
            back_up(connection, target)
        finally:
            connection.close()
    except DatabaseRefused as error:
        sys.stderr.write(f"Error: {error}\n")
        return REFUSED
    sys.stdout.write(f"{source} is copied to {target}, as of now ({target.stat().st_size:,} bytes)\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stepwell backup",
        description="Copy a database file while its engine runs. The copy is a database like any other: "
        "start `stepwell dev --db COPY` on it to restore.",
    )
    parser.add_argument(
        "--db", metavar="FILE", default=DEFAULT_DATABASE, help=f"default: {DEFAULT_DATABASE} in this directory"
    )
    parser.add_argument("target", metavar="COPY", help="a file that does not exist yet")
    return parser
