"""What can go wrong in a command, as sentences with exit codes."""

import re
from typing import ClassVar

from ..api.enums import DeduplicationPolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from ..api.errors import ApiError, DeadlineExceeded, Internal, Unavailable, WorkflowExecutionAlreadyStarted

_OPTIONS = (
    ("workflow_id", "--workflow-id"),
    ("workflow_id_conflict_policy", "--id-conflict-policy"),
    ("workflow_id_reuse_policy", "--id-reuse-policy"),
)

FAILED, USAGE, REFUSED, OUT_OF_REACH, BUG = 1, 2, 3, 4, 5


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
        case WorkflowExecutionAlreadyStarted():
            return Refused(_with_options(error.message))
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


def _with_options(message: str) -> str:
    """Fields of the request as the options of ``stepwell workflow start``, their values as one would type them."""
    for policy in (*WorkflowIDConflictPolicy, *WorkflowIDReusePolicy, *DeduplicationPolicy):
        message = re.sub(rf"\b{policy.value}\b", policy.value.lower(), message)
    for field, option in _OPTIONS:
        message = re.sub(rf"\b{field}\b", option, message)
    return message
