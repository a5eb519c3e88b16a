"""Types that clients, workers and workflow code share: retry policies, id policies, raw values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from .api import common as wire
from .api.enums import (
    QueryRejectCondition,
    ResetReapplyExcludeType,
    ResetType,
    RetryState,
    TimeoutType,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from .api.payloads import Payload
from .search_attributes import (
    SearchAttributeIndexedValueType,
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributeUpdate,
    TypedSearchAttributes,
)

__all__ = [
    "QueryRejectCondition",
    "RawValue",
    "ResetReapplyExcludeType",
    "ResetType",
    "RetryPolicy",
    "RetryState",
    "SearchAttributeIndexedValueType",
    "SearchAttributeKey",
    "SearchAttributePair",
    "SearchAttributeUpdate",
    "TimeoutType",
    "TypedSearchAttributes",
    "WorkflowIDConflictPolicy",
    "WorkflowIDReusePolicy",
]


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how fast something is tried again (AC-09).

    Raises ``ValueError`` for a coefficient below 1, an interval that is not above zero, a maximum interval below the
    initial one, or a negative number of attempts, and ``TypeError`` for values of another type.
    """

    initial_interval: timedelta = timedelta(seconds=1)
    """Wait before the second attempt."""
    backoff_coefficient: float = 2.0
    """Each wait is the one before times this."""
    maximum_interval: timedelta | None = None
    """Longest wait; 100 times the first when not given."""
    maximum_attempts: int = 0
    """All attempts together; 1 means no retry, 0 no limit."""
    non_retryable_error_types: Sequence[str] | None = None
    """Exact names of error types that are not tried again (AC-10)."""

    def __post_init__(self) -> None:
        self._check_types()
        if self.initial_interval <= timedelta(0):
            raise ValueError(f"RetryPolicy.initial_interval must be above zero, not {self.initial_interval}")
        if not (math.isfinite(self.backoff_coefficient) and self.backoff_coefficient >= 1):
            raise ValueError(
                f"RetryPolicy.backoff_coefficient must be at least 1 and finite, not {self.backoff_coefficient}"
            )
        if self.maximum_interval is not None and self.maximum_interval < self.initial_interval:
            raise ValueError(
                f"RetryPolicy.maximum_interval ({self.maximum_interval}) must not be below initial_interval "
                f"({self.initial_interval})"
            )
        if self.maximum_attempts < 0:
            raise ValueError(f"RetryPolicy.maximum_attempts must be 0 (no limit) or more, not {self.maximum_attempts}")

    def _check_types(self) -> None:
        for field, of in (
            ("initial_interval", timedelta),
            ("backoff_coefficient", (int, float)),
            ("maximum_interval", (timedelta, type(None))),
            ("maximum_attempts", int),
        ):
            value = getattr(self, field)
            if not isinstance(value, of):
                raise TypeError(f"RetryPolicy.{field} cannot be of type {type(value).__name__}; see its documentation")
        names = self.non_retryable_error_types
        if isinstance(names, str):
            raise ValueError("RetryPolicy.non_retryable_error_types is a list of names; put the name into a list")
        for name in names or ():
            if not isinstance(name, str):
                raise TypeError(f"RetryPolicy.non_retryable_error_types holds {name!r}; give names of error types")

    def to_record(self) -> wire.RetryPolicy:
        """The wire record."""
        return wire.RetryPolicy(
            initial_interval=self.initial_interval,
            backoff_coefficient=self.backoff_coefficient,
            maximum_interval=self.maximum_interval,
            maximum_attempts=self.maximum_attempts,
            non_retryable_error_types=tuple(self.non_retryable_error_types or ()),
        )

    @classmethod
    def from_record(cls, record: wire.RetryPolicy) -> "RetryPolicy":
        """From the wire record."""
        return cls(
            initial_interval=record.initial_interval,
            backoff_coefficient=record.backoff_coefficient,
            maximum_interval=record.maximum_interval,
            maximum_attempts=record.maximum_attempts,
            non_retryable_error_types=record.non_retryable_error_types or None,
        )


@dataclass(frozen=True)
class RawValue:
    """A payload that is passed through as it is: neither encoded when given, nor decoded when a parameter has this
    type.
    """

    payload: Payload
