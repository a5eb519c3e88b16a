"""Which schedules a query of the filter language means (VI-01, of schedules). Pure.

A schedule has its own search attributes, ``ScheduleId``, ``StepwellSchedulePaused``, and the ``WorkflowType`` of its
action; whatever else runs have is NULL.
"""

from collections.abc import Mapping

from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import CountGroup

from ..visibility.attributes import WORKFLOW_TYPE, Value, ValueType, custom_values
from ..visibility.evaluate import matches
from ..visibility.filters import Filter, Query
from ..visibility.pages import MAX_GROUPS
from ..visibility.query import parse
from .runs import action_of
from .state import ScheduleRecord, decode

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
    return matches(filter_, _values(record))


def _values(record: ScheduleRecord) -> dict[str, Value]:
    return {
        **{name: value for name, (_, value) in custom_values(record.search_attributes).items()},
        "ScheduleId": record.schedule_id,
        "StepwellSchedulePaused": record.schedule.state.paused,
        WORKFLOW_TYPE.name: action_of(record).workflow_type,
    }


class Counting:
    """Counts those that a query means, in all or by value. Raises InvalidArgument."""

    def __init__(self, query: str, types: Mapping[str, ValueType]) -> None:
        parsed = parse(query, {**types, **_OWN}, counts=True)
        self.count = 0
        self._filter = parsed.filter
        self._group_by = parsed.group_by
        self._all = parsed == Query()
        self._groups: dict[str | None, int] = {}

    def add(self, stored: bytes) -> None:
        if self._all:
            self.count += 1  # nobody need read it
            return
        values = _values(decode(stored))
        if not matches(self._filter, values):
            return
        self.count += 1
        if self._group_by is not None:
            value = values.get(self._group_by.name)
            group = value if isinstance(value, str) else None
            self._groups[group] = self._groups.get(group, 0) + 1
            if len(self._groups) > MAX_GROUPS:
                raise InvalidArgument(
                    f"GROUP BY would have more than {MAX_GROUPS} groups; group by an attribute of fewer values, or "
                    "count with a filter",
                    field="query",
                )

    @property
    def groups(self) -> tuple[CountGroup, ...]:
        return tuple([CountGroup(value=value, count=count) for value, count in self._groups.items()])
