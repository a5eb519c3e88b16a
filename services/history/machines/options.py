"""Options of a run that is there: what a start that meets it attaches (LC-04), and what a reset (LC-18) or a call
changes.

Neither wakes workflow code, nor holds a close back (``inbox.note``). What changes nothing leaves no event.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from stepwell.api import limits
from stepwell.api.callbacks import Callback
from stepwell.api.common import Priority
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import FailedPrecondition, InvalidArgument
from stepwell.api.events import WorkflowExecutionOptionsUpdated
from stepwell.api.requests import PostResetOptions, StartWorkflowRequest, WorkflowExecutionOptions

from .. import priorities, request_ids
from ..builder import TransitionBuilder, unchanged
from ..requests import OptionsChange, Start, UpdateOptions
from ..state import ExecutionState
from ..transition import Transition
from . import inbox
from .run_checks import check_open, check_run

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
    if options is not None and options.attach_completion_callbacks and not options.attach_request_id:
        raise InvalidArgument(
            "on_conflict_options.attach_completion_callbacks needs attach_request_id, so that a repeat does not attach "
            "them again; set both. A repeat does not help.",
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
    check_room(draft.state, request)
    request_ids.remember_attached(draft.state, asked.request_id)
    event = WorkflowExecutionOptionsUpdated(
        attached_request_id=asked.request_id,
        identity=asked.identity,
        attached_completion_callbacks=_callbacks(asked),
        principal=request.principal,
    )
    inbox.note(draft, event)


def check_room(state: ExecutionState, request: Start) -> None:
    """For the callbacks of a start that ``attaches``. Raises FailedPrecondition."""
    callbacks = _callbacks(request.start)
    if not callbacks:
        return
    there = (*callbacks_of(state), *callbacks)
    if len(there) > limits.MAX_CALLBACKS or bytes_of(there) > limits.MAX_CALLBACK_BYTES:
        raise FailedPrecondition(
            f"workflow {state.workflow_id!r} would have {len(there)} completion callbacks of {bytes_of(there)} bytes, "
            f"above the limit of {limits.MAX_CALLBACKS} or of {limits.MAX_CALLBACK_BYTES} bytes; let one of them tell "
            "the others. A repeat does not help."
        )


def callbacks_of(state: ExecutionState) -> tuple[Callback, ...]:
    """With those that wait for their event's number."""
    callbacks = state.callbacks
    for entry in state.buffered:
        if isinstance(entry.attributes, WorkflowExecutionOptionsUpdated):
            callbacks += entry.attributes.attached_completion_callbacks
    return callbacks


def bytes_of(callbacks: Iterable[Callback]) -> int:
    """Of URLs and headers."""
    return sum(len(one.url) + sum(len(name) + len(value) for name, value in one.headers.items()) for one in callbacks)


def _callbacks(asked: StartWorkflowRequest) -> tuple[Callback, ...]:
    options = asked.on_conflict_options
    attached = options is not None and options.attach_completion_callbacks
    return asked.completion_callbacks if attached else ()


def change_asked(asked: PostResetOptions, identity: str, where: str, *, principal: str = "") -> OptionsChange:
    """Raises InvalidArgument."""
    try:
        return change_of(asked.workflow_execution_options, asked.update_mask, identity, principal=principal)
    except InvalidArgument as bad:
        raise InvalidArgument(f"{where}.update_workflow_options: {bad.message}", field="post_reset_operations") from bad


def change_of(
    options: WorkflowExecutionOptions, update_mask: str, identity: str, *, principal: str = ""
) -> OptionsChange:
    """Raises InvalidArgument."""
    paths = tuple([path.strip() for path in update_mask.split(",") if path.strip()])
    unknown = [path for path in paths if path not in _PATHS]
    problem = priorities.problem_of(options.priority)
    if unknown:
        problem = (
            f"update_mask names {unknown[0][:100]!r}, which cannot be changed; what can is {', '.join(sorted(_PATHS))}"
        )
    elif not paths:
        problem = f"update_mask is empty, so nothing would change; name one or more of {', '.join(sorted(_PATHS))}"
    if problem:
        raise InvalidArgument(f"{problem}. A repeat does not help.", field="update_mask")
    return OptionsChange(paths=paths, options=options, identity=identity, principal=principal)


def update(state: ExecutionState, request: UpdateOptions, now: datetime) -> Transition:
    """Of an open run, asked for by a client."""
    check_run(state, request.run_id)
    check_open(state)
    event = changed(state, request.change, "")
    if event is None:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    inbox.note(draft, event)
    inbox.settle(draft)
    return draft.finish()


def changed(state: ExecutionState, change: OptionsChange, reset_run_id: str) -> WorkflowExecutionOptionsUpdated | None:
    """The event that changes the options; None when they are so already."""
    given = change.options.priority or Priority()
    before = state.priority or Priority()
    after = given if _PRIORITY in change.paths else _with_fields(before, given, change.paths)
    if after == before:
        return None
    return WorkflowExecutionOptionsUpdated(
        identity=change.identity, priority=after, reset_run_id=reset_run_id, principal=change.principal
    )


def _with_fields(before: Priority, given: Priority, paths: Sequence[str]) -> Priority:
    names = [path.removeprefix(f"{_PRIORITY}.") for path in paths]
    return msgspec.structs.replace(before, **{name: getattr(given, name) for name in names})
