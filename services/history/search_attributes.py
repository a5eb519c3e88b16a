"""What search attributes must be like, wherever they are said: at a start, for a child, or by workflow code (VI-08)."""

from collections.abc import Mapping

from stepwell.api import limits
from stepwell.api.payloads import Payload, size_of


def problem_of(values: Mapping[str, Payload]) -> str:
    """What is wrong with the attributes of one run, and the way out; empty when nothing is."""
    for name, value in values.items():
        size = len(name.encode(errors="replace"))
        if not 0 < size <= limits.MAX_ID_BYTES:
            return (
                f"the name of search attribute {name[:80]!r} has {size} bytes; use one of 1 to {limits.MAX_ID_BYTES} "
                "bytes"
            )
        if problem := problem_of_value(name, value):
            return problem
    return problem_of_all(values)


def problem_of_value(name: str, value: Payload) -> str:
    size = len(value.data)
    if size <= limits.MAX_SEARCH_ATTRIBUTE_BYTES:
        return ""
    return (
        f"search attribute {name!r} has {size} bytes; at most {limits.MAX_SEARCH_ATTRIBUTE_BYTES} are taken. "
        "Keep in it what is searched for, and the rest elsewhere"
    )


def problem_of_all(values: Mapping[str, Payload]) -> str:
    if len(values) > limits.MAX_SEARCH_ATTRIBUTES:
        return (
            f"the run would have {len(values)} search attributes; at most {limits.MAX_SEARCH_ATTRIBUTES} are taken. "
            "Take some away first"
        )
    size = sum(len(name.encode(errors="replace")) for name in values) + size_of(tuple(values.values()))
    if size > limits.MAX_SEARCH_ATTRIBUTES_BYTES:
        return (
            f"the search attributes of the run would have {size} bytes; at most {limits.MAX_SEARCH_ATTRIBUTES_BYTES} "
            "are taken. Take some away first, or keep the data elsewhere and say where"
        )
    return ""
