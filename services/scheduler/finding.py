"""Which schedules a query of the filter language means (VI-01, of schedules). Pure.

A schedule has its own search attributes, ``ScheduleId``, ``StepwellSchedulePaused``, and the ``WorkflowType`` of its
action; whatever else runs have is NULL.
"""

from collections.abc import Mapping

from stepwell.api.errors import InvalidArgument

from ..visibility.attributes import WORKFLOW_TYPE, Value, ValueType, custom_values
from ..visibility.evaluate import matches
from ..visibility.filters import Filter
from ..visibility.query import parse
from .runs import action_of
from .state import ScheduleRecord

_OWN = {"ScheduleId": ValueType.KEYWORD, "StepwellSchedulePaused": ValueType.BOOL}


def filter_of(query: str, types: Mapping[str, ValueType]) -> Filter:
    """``types``: the custom attributes of the namespace. Raises InvalidArgument."""
    parsed = parse(query, {**types, **_OWN}, ordered_by=frozenset())
    if parsed.order is not None:
        raise InvalidArgument(
            "query has ORDER BY, but schedules come in the order of their ids; leave it out", field="query"
        )
    return parsed.filter


def is_meant(filter_: Filter, record: ScheduleRecord) -> bool:
    values: dict[str, Value] = {
        **{name: value for name, (_, value) in custom_values(record.search_attributes).items()},
        "ScheduleId": record.schedule_id,
        "StepwellSchedulePaused": record.schedule.state.paused,
        WORKFLOW_TYPE.name: action_of(record).workflow_type,
    }
    return matches(filter_, values)
