"""What a priority must be like (TQ-12, TQ-13)."""

from stepwell.api.common import Priority
from stepwell.api.limits import (
    MAX_FAIRNESS_KEY_BYTES,
    MAX_FAIRNESS_WEIGHT,
    MAX_PRIORITY,
    MIN_FAIRNESS_WEIGHT,
)


def problem_of(priority: Priority | None) -> str:
    """What is wrong with it, and the way out; empty when nothing is."""
    if priority is None:
        return ""
    if not 0 <= priority.priority_key <= MAX_PRIORITY:
        return (
            f"priority_key is {priority.priority_key}; use 1 (first) to {MAX_PRIORITY} (last), or leave it out to "
            "inherit it"
        )
    size = len(priority.fairness_key.encode())
    if size > MAX_FAIRNESS_KEY_BYTES:
        return (
            f"fairness_key has {size} bytes, the limit is {MAX_FAIRNESS_KEY_BYTES}; use a shorter one, such as a hash"
        )
    weight = priority.fairness_weight
    if weight and not MIN_FAIRNESS_WEIGHT <= weight <= MAX_FAIRNESS_WEIGHT:
        return (
            f"fairness_weight is {weight}; use {MIN_FAIRNESS_WEIGHT:g} to {MAX_FAIRNESS_WEIGHT:g}, or leave it out to "
            "inherit it"
        )
    return ""
