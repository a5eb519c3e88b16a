"""What can go wrong in a command, as sentences with exit codes."""

from typing import ClassVar

from ..api.errors import ApiError, DeadlineExceeded, Internal, Unavailable

FAILED, USAGE, REFUSED, OUT_OF_REACH = 1, 2, 3, 4


class Trouble(Exception):
    """Ends the command with a message on standard error and this exit code."""

    exit_code: ClassVar[int] = REFUSED


class WorkflowFailed(Trouble):
    exit_code = FAILED


class Usage(Trouble):
    exit_code = USAGE


class Refused(Trouble):
    exit_code = REFUSED


class OutOfReach(Trouble):
    exit_code = OUT_OF_REACH


def trouble_of(error: ApiError, address: str) -> Trouble:
    """What the engine's refusal means for a person at a terminal."""
    match error:
        case DeadlineExceeded():
            return Refused(error.message)
        case Unavailable():
            return OutOfReach(
                f"{error.message}\n"
                f"Is an engine running at {address}? "
                "Start one with `stepwell dev`, or name another with --address (or STEPWELL_ADDRESS)."
            )
        case Internal():
            return OutOfReach(f"the engine at {address} failed: {error.message}")
        case _:
            return Refused(error.message)
