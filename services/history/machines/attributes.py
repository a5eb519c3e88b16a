"""What workflow code says of its run to those who look for it: search attributes and memo (VI-09), by command.

Both are merged into the state by ``apply``; the visibility record is written anew with the commit.
"""

from collections.abc import Mapping

from stepwell.api import limits
from stepwell.api.commands import ModifyWorkflowProperties, UpsertWorkflowSearchAttributes
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import UpsertWorkflowSearchAttributes as SearchAttributesUpserted
from stepwell.api.events import WorkflowPropertiesModified
from stepwell.api.payloads import Payload

from .. import search_attributes
from ..apply import merged
from ..builder import TransitionBuilder
from ..tasks import RecordVisibility
from .bad_command import BadCommand, check_id, payload_size
from .carrying import Carrying
from .closing import visibility

_BAD_SEARCH = WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES
_BAD_MEMO = WorkflowTaskFailedCause.BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES


def upsert_search_attributes(draft: TransitionBuilder, command: UpsertWorkflowSearchAttributes, task: Carrying) -> None:
    """Raises BadCommand for none at all, a bad name, a value that is too large, or too many together (VI-08)."""
    values = command.search_attributes
    _check_names("search attribute", _BAD_SEARCH, values)
    problems = [search_attributes.problem_of_value(name, value) for name, value in values.items()]
    problems.append(search_attributes.problem_of_all(merged(draft.state.search_attributes, values)))
    for problem in filter(None, problems):
        raise BadCommand(_BAD_SEARCH, f"{problem}.")
    draft.record(
        SearchAttributesUpserted(search_attributes=values, workflow_task_completed_event_id=task.completed_event_id)
    )
    _record_visibility(draft)


def modify_memo(draft: TransitionBuilder, command: ModifyWorkflowProperties, task: Carrying) -> None:
    """Raises BadCommand for nothing at all, a bad name, or a memo that would be too large."""
    values = command.upserted_memo
    _check_names("memo", _BAD_MEMO, values)
    _check_total("memo", _BAD_MEMO, merged(draft.state.memo, values), limits.MAX_MEMO_BYTES)
    draft.record(
        WorkflowPropertiesModified(upserted_memo=values, workflow_task_completed_event_id=task.completed_event_id)
    )
    _record_visibility(draft)


def search_attributes_size(command: UpsertWorkflowSearchAttributes) -> int:
    return _size(command.search_attributes)


def memo_size(command: ModifyWorkflowProperties) -> int:
    return _size(command.upserted_memo)


def _record_visibility(draft: TransitionBuilder) -> None:
    """Once a commit, with what is known at its end."""
    draft.tasks[:] = [task for task in draft.tasks if type(task) is not RecordVisibility]
    draft.tasks.append(visibility(draft.state))


def _check_names(what: str, cause: WorkflowTaskFailedCause, values: Mapping[str, Payload]) -> None:
    if not values:
        raise BadCommand(cause, f"there is no {what} in the command; leave it out when there is nothing to say.")
    for name in values:
        check_id(cause, f"the name of {what} {name!r}", name)


def _check_total(what: str, cause: WorkflowTaskFailedCause, values: Mapping[str, Payload], limit: int) -> None:
    size = sum(len(name.encode(errors="replace")) for name in values) + _size(values)
    if size > limit:
        raise BadCommand(
            cause,
            f"the {what} of the run would have {size} bytes; at most {limit} are taken. Take some away first, or keep "
            "the data elsewhere and say where.",
        )


def _size(values: Mapping[str, Payload]) -> int:
    return sum(map(payload_size, values.values()))
