"""Options of a run that is there: what a start that meets it attaches (LC-04), and what a reset changes (LC-18).

Neither wakes workflow code, nor holds a close back (``inbox.note``). What changes nothing leaves no event.
"""

from collections.abc import Sequence

import msgspec
from stepwell.api.common import Priority
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import WorkflowExecutionOptionsUpdated
from stepwell.api.requests import PostResetOptions, StartWorkflowRequest

from .. import priorities, request_ids
from ..builder import TransitionBuilder
from ..requests import OptionsChange, Start
from ..state import ExecutionState
from . import inbox

_PRIORITY = "priority"
_PATHS = frozenset({_PRIORITY, *(f"{_PRIORITY}.{field}" for field in Priority.__struct_fields__)})


def check_attach(asked: StartWorkflowRequest) -> None:
    """Raises InvalidArgument."""
    options = asked.on_conflict_options
    if options is not None and options.attach_request_id and not asked.request_id:
        raise InvalidArgument(
            "on_conflict_options.attach_request_id needs a request_id to attach; give the start one, or leave the "
            "option out. A repeat does not help.",
            field="on_conflict_options",
        )


def attaches(request: Start) -> bool:
    """Whether the start is to be remembered by the open run that it meets."""
    asked = request.start
    options = asked.on_conflict_options
    uses_existing = asked.workflow_id_conflict_policy is WorkflowIDConflictPolicy.USE_EXISTING
    return options is not None and options.attach_request_id and uses_existing


def attach(draft: TransitionBuilder, request: Start) -> None:
    """Of a start that ``attaches``, to the draft's open run. The caller ends with ``inbox.settle``."""
    asked = request.start
    request_ids.remember_attached(draft.state, asked.request_id)
    inbox.note(draft, WorkflowExecutionOptionsUpdated(attached_request_id=asked.request_id, identity=asked.identity))


def change_asked(asked: PostResetOptions, identity: str, where: str) -> OptionsChange:
    """Raises InvalidArgument."""
    paths = tuple([path.strip() for path in asked.update_mask.split(",") if path.strip()])
    unknown = [path for path in paths if path not in _PATHS]
    problem = priorities.problem_of(asked.workflow_execution_options.priority)
    if unknown:
        problem = (
            f"update_mask names {unknown[0][:100]!r}, which cannot be changed; what can is {', '.join(sorted(_PATHS))}"
        )
    elif not paths:
        problem = f"update_mask is empty, so nothing would change; name one or more of {', '.join(sorted(_PATHS))}"
    if problem:
        raise InvalidArgument(
            f"{where}.update_workflow_options: {problem}. A repeat does not help.", field="post_reset_operations"
        )
    return OptionsChange(paths=paths, options=asked.workflow_execution_options, identity=identity)


def changed(state: ExecutionState, change: OptionsChange, reset_run_id: str) -> WorkflowExecutionOptionsUpdated | None:
    """The event that changes the options; None when they are so already."""
    given = change.options.priority or Priority()
    before = state.priority or Priority()
    after = given if _PRIORITY in change.paths else _with_fields(before, given, change.paths)
    if after == before:
        return None
    return WorkflowExecutionOptionsUpdated(identity=change.identity, priority=after, reset_run_id=reset_run_id)


def _with_fields(before: Priority, given: Priority, paths: Sequence[str]) -> Priority:
    names = [path.removeprefix(f"{_PRIORITY}.") for path in paths]
    return msgspec.structs.replace(before, **{name: getattr(given, name) for name in names})
