"""The command ``stepwell``: run a development server, and start, watch and steer workflows from a terminal.

Exit codes: 0 done, 1 the workflow did not succeed, 2 the command line or a setting is wrong, 3 not found or refused,
4 the engine cannot be reached or failed, 5 a bug in the command, 130 interrupted.
"""

from .commands import cli, main

__all__ = ["cli", "main"]
