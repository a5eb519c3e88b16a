"""Key spaces: where the executions of a namespace are kept. Pure.

Workflows are kept under the namespace's own name. Stand-alone activities (AC-28) are kept beside them, in a space whose
name no namespace can have, so that neither's ids, lists or counts ever meet the other's, at no cost to either. What is
agreed for a namespace (retention, limits, task queues) holds in both.
"""

MARK = "\x01"
"""In the name of every space but a namespace's own. The API refuses control characters in names."""

_ACTIVITIES = MARK
"""Behind the namespace's name."""


def of_activities(namespace: str) -> str:
    """The space of its stand-alone activities."""
    return namespace + _ACTIVITIES


def has_activities(space: str) -> bool:
    """Whether executions of the space are stand-alone activities."""
    return space.endswith(_ACTIVITIES)


def namespace_of(space: str) -> str:
    """The namespace that the space belongs to."""
    return space.removesuffix(_ACTIVITIES)
