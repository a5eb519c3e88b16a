"""Types that clients, workers and workflow code share: retry policies, priorities, id policies, raw values."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from .api import callbacks, requests
from .api import common as wire
from .api.enums import (
    DeduplicationPolicy,
    QueryRejectCondition,
    ResetReapplyExcludeType,
    ResetType,
    RetryState,
    TimeoutType,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from .api.limits import MAX_FAIRNESS_KEY_BYTES, MAX_FAIRNESS_WEIGHT, MAX_PRIORITY, MIN_FAIRNESS_WEIGHT
from .api.payloads import Payload
from .search_attributes import (
    SearchAttributeIndexedValueType,
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributeUpdate,
    TypedSearchAttributes,
)

__all__ = [
    "CompletionCallback",
    "Deduplication",
    "DeduplicationPolicy",
    "Priority",
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
class CompletionCallback:
    """An address that is told by ``POST``, at least once, how a workflow's chain of runs ended (LC-10).

    The operator of the installation says which addresses are allowed. The body is JSON, with the status and the event
    that closed the last run; the header ``Stepwell-Callback-Id`` is the same when it comes again.
    """

    url: str
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        url: object = self.url
        if not isinstance(url, str):
            raise TypeError(f"CompletionCallback.url cannot be of type {type(url).__name__}")
        headers: Mapping[Any, Any] = self.headers
        for name, value in headers.items():
            if not (isinstance(name, str) and isinstance(value, str)):
                raise TypeError(f"CompletionCallback.headers has {name!r}: {value!r}; names and values are text")

    def to_record(self) -> callbacks.Callback:
        """The wire record."""
        return callbacks.Callback(url=self.url, headers=dict(self.headers))


@dataclass(frozen=True)
class Deduplication:
    """Of several starts with one ``key`` in a namespace, whatever their workflow ids, one counts (LC-48).

    ``policy``: what the others are told: that it is started already (FAIL), the run that has the key (USE_EXISTING), or
    nothing, since they ask that one to cancel and start themselves (CANCEL_EXISTING). The key is held until the
    workflow ends; with a ``ttl`` for so long behind the last start with it, whether the workflow runs or not.

    Raises ``TypeError`` for values of another type, ``ValueError`` for an empty key.
    """

    key: str
    policy: DeduplicationPolicy = DeduplicationPolicy.FAIL
    ttl: timedelta | None = None

    def __post_init__(self) -> None:
        for field, of in (("key", str), ("policy", DeduplicationPolicy), ("ttl", (timedelta, type(None)))):
            value = getattr(self, field)
            if not isinstance(value, of):
                raise TypeError(f"Deduplication.{field} cannot be of type {type(value).__name__}")
        if not self.key:
            raise ValueError("Deduplication.key is empty (an unset variable?); give it a value, or leave it all out")

    def to_record(self) -> requests.Deduplication:
        """The wire record."""
        return requests.Deduplication(key=self.key, policy=self.policy, ttl=self.ttl)


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
    """Exact names of error types that are not tried again (AC-10): at most 100, of at most 1,000 characters."""

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


def retry_record(policy: object, kind: str, name: str = "") -> wire.RetryPolicy | None:
    """The wire record of what was given as ``retry_policy``. Raises ``TypeError`` that names the call."""
    if policy is None:
        return None
    if not isinstance(policy, RetryPolicy):
        who = f"{kind} {name!r}" if name else kind
        raise TypeError(
            f"{who}: retry_policy must be a RetryPolicy, not {type(policy).__name__}; "
            "pass RetryPolicy(…), such as RetryPolicy(maximum_attempts=3), or leave it out"
        )
    return policy.to_record()


@dataclass(frozen=True)
class Priority:
    """Which of the tasks that wait in a task queue go out first. It matters only where tasks wait (TQ-12, TQ-13).

    What is None is inherited: by an activity or a child from the workflow that calls it. Raises ``ValueError`` for a
    value outside its limits, and ``TypeError`` for one of another type.
    """

    priority_key: int | None = None
    """1 to 5, lower goes first; 3 when nobody says otherwise."""
    fairness_key: str | None = None
    """Tasks of one priority take turns by this key, such as a tenant's name; at most 64 bytes. What counts is how many
    were handed out, not how many run."""
    fairness_weight: float | None = None
    """A key of weight 2 gets two turns for one of weight 1; 0.001 to 1000, and 1 when nobody says otherwise."""

    default: ClassVar["Priority"]

    def __post_init__(self) -> None:
        key, fairness, weight = self.priority_key, self.fairness_key, self.fairness_weight
        for field, value, of in (
            ("priority_key", key, int),
            ("fairness_key", fairness, str),
            ("fairness_weight", weight, (int, float)),
        ):
            if value is not None and (isinstance(value, bool) or not isinstance(value, of)):
                raise TypeError(f"Priority.{field} cannot be of type {type(value).__name__}; see its documentation")
        if key is not None and not 1 <= key <= MAX_PRIORITY:
            raise ValueError(f"Priority.priority_key must be 1 (first) to {MAX_PRIORITY} (last), not {key}")
        if fairness is not None and (size := len(fairness.encode())) > MAX_FAIRNESS_KEY_BYTES:
            raise ValueError(
                f"Priority.fairness_key has {size} bytes, the limit is {MAX_FAIRNESS_KEY_BYTES}; use a shorter one, "
                "such as a hash"
            )
        if weight is not None and not MIN_FAIRNESS_WEIGHT <= weight <= MAX_FAIRNESS_WEIGHT:
            raise ValueError(
                f"Priority.fairness_weight must be {MIN_FAIRNESS_WEIGHT:g} to {MAX_FAIRNESS_WEIGHT:g}, not {weight}"
            )

    def to_record(self) -> wire.Priority | None:
        """The wire record; None when nothing is given."""
        if not (self.priority_key or self.fairness_key or self.fairness_weight):
            return None
        return wire.Priority(
            priority_key=self.priority_key or 0,
            fairness_key=self.fairness_key or "",
            fairness_weight=float(self.fairness_weight or 0.0),
        )

    @classmethod
    def from_record(cls, record: wire.Priority | None) -> "Priority":
        """From the wire record."""
        if record is None:
            return cls.default
        return cls(
            priority_key=record.priority_key or None,
            fairness_key=record.fairness_key or None,
            fairness_weight=record.fairness_weight or None,
        )


Priority.default = Priority()


@dataclass(frozen=True)
class RawValue:
    """A payload that is passed through as it is: neither encoded when given, nor decoded when a parameter has this
    type.
    """

    payload: Payload
