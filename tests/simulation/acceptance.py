"""What the results of programs may be, evaluated without any engine: most operations have exactly one right result
whatever fails around them; races have one per branch."""

from typing import Any

from tests.simulation.programs import Node, Spec

HOW = ("completed", "failed", "cancelled", "terminated", "timed-out")
"""Ways in which a workflow that was waited for has ended."""

DECIDED_BY_TIMING = {
    "act limited": "an attempt may be the last one and be cut off by its worker's shutdown or its timeout",
    "act hang": "it times out, unless its worker shuts down first",
    "act silent": "the heartbeat's timeout, the attempt's and the worker's shutdown race",
    "act bounded": "which of its timeouts ends it depends on when it is taken",
    "local limited": "an attempt may be the last one and be cut off by its worker's shutdown or its timeout",
    "wait": "the signals and its timeout race",
    "tell": "the other workflow may be open or not",
    "entropy": "it says an id, a random number and a time of its own run",
    "first": "its branches race",
    "cancel-after": "what is cancelled may have ended",
    "child cancel": "what is cancelled may have ended",
    "child attach": "the id may be another workflow's",
    "await": "there may be no such workflow yet, and others may end it",
    "session": "its worker may be gone",
}
"""Kinds of nodes for which ``accepts`` takes several values, and why. All others have one result on any schedule."""


def kind_of(node: Node) -> str:
    match node:
        case ["act" | "local" as operation, spec]:
            return f"{operation} {spec['kind']}"
        case ["child", spec, ["flaky", _, _]] if spec["then"] == "await":
            return "child retry"
        case ["child", spec, _]:
            return f"child {spec['then']}"
        case [operation, *_]:
            return str(operation)
    raise ValueError(f"no operation: {node!r}")


def accepts(node: Node, value: Any) -> str:  # noqa: C901, PLR0912 - a table, one row per operation
    """Why ``value`` cannot be the result of ``node``; empty when it can."""
    match node:
        case ["act", spec]:
            return _accepts_activity(spec, value)
        case ["sleep", _]:
            return _must_equal(value, "slept", node)
        case ["signals", _]:
            return _must_equal(value, "signalled", node)
        case ["wait", _, _]:
            return _must_be_one_of(value, ("signalled", "timed-out"), node)
        case ["chain", segments]:
            return _accepts_all([inner for _, inner in segments], value)
        case ["local", spec]:
            return _accepts_activity(spec, value)
        case ["flaky", _, inner]:
            return accepts(inner, value)
        case ["leave", _]:
            return _must_equal(value, "left", node)
        case ["tell", _, count]:
            told = isinstance(value, list) and len(value) == count and set(value) <= {"told", "untold"}
            return "" if told else f"{value!r} is no answer of {node!r}"
        case ["child", spec, root]:
            return _accepts_child(spec, root, value)
        case ["await", _]:
            ends = [["ended", how] for how in (*HOW, "absent")]
            return _must_be_one_of(value, ends, node)
        case ["session", specs]:
            done = [f"done-{spec['id']}" for spec in specs]
            return _must_be_one_of(value, [done, ["broken"]], node)
        case ["seq" | "gather", nodes]:
            return _accepts_all(nodes, value)
        case ["first", nodes]:
            if not isinstance(value, list) or len(value) != 2 or value[0] not in range(len(nodes)):
                return f"{value!r} does not name a branch of {node!r}"
            return accepts(nodes[value[0]], value[1])
        case ["cancel-after", _, inner]:
            return "" if value == "cancelled" else accepts(inner, value)
        case ["bug"]:
            return _must_equal(value, "fixed", node)
        case ["entropy", _]:
            return "" if isinstance(value, str) and len(value) > 30 else f"{value!r} is no answer of {node!r}"
        case _:
            raise ValueError(f"unknown operation {node!r}")


def _accepts_all(nodes: list[Node], values: Any) -> str:
    if not isinstance(values, list) or len(values) != len(nodes):
        return f"{values!r} has not one value for each of {nodes!r}"
    return next((problem for node, value in zip(nodes, values, strict=True) if (problem := accepts(node, value))), "")


def _accepts_child(spec: Spec, root: Node, value: Any) -> str:
    if value in (["taken"], ["cut"]):
        return ""  # by another parent, or by a run of this one that it has replaced or goes on from
    if spec["then"] in ("leave", "rash"):
        return _must_equal(value, "left", spec)
    if spec["then"] == "cancel" and value == ["cancelled"]:
        return ""
    if spec["then"] == "attach":
        return _must_be_one_of(value, [["joined", how] for how in HOW], spec)
    failing = root[1][-1][1] if root[0] == "chain" else root[2] if root[0] == "flaky" else root
    if failing[1][-1] == ["fail", "Hopeless"]:
        return _must_equal(value, ["failed", "Hopeless"], spec)
    if root[0] == "flaky" and root[1] >= spec["attempts"]:
        return _must_equal(value, ["failed", "Flaky"], spec)
    return accepts(root, value)


def _accepts_activity(spec: Spec, value: Any) -> str:
    done = f"done-{spec['id']}"
    match spec["kind"]:
        case "sure" | "beating" | "late":
            return _must_equal(value, done, spec)
        case "fatal":
            return _must_equal(value, ["failed", "Fatal"], spec)
        case "limited":
            ends = [["failed", "Flaky"], ["timed-out", "START_TO_CLOSE"], ["failed", "WorkerShutdown"]]
            always_fails = spec["failures"] >= spec["attempts"]
            return _must_be_one_of(value, ends if always_fails else [done, *ends[1:]], spec)
        case "hang":
            return _must_be_one_of(value, [["timed-out", "START_TO_CLOSE"], ["failed", "WorkerShutdown"]], spec)
        case "silent":
            ends = [["timed-out", "HEARTBEAT"], ["timed-out", "START_TO_CLOSE"], ["failed", "WorkerShutdown"]]
            return _must_be_one_of(value, ends, spec)
        case "bounded":
            limits = ("SCHEDULE_TO_CLOSE", "SCHEDULE_TO_START", "START_TO_CLOSE")
            ends = [["failed", "Flaky"], ["failed", "WorkerShutdown"], *(["timed-out", limit] for limit in limits)]
            return _must_be_one_of(value, ends, spec)
        case "unpolled":
            return _must_equal(value, ["timed-out", "SCHEDULE_TO_START"], spec)
        case kind:
            raise ValueError(f"unknown activity kind {kind!r}")


def _must_equal(value: Any, expected: Any, node: Any) -> str:
    return "" if value == expected else f"{node!r} gave {value!r}, not {expected!r}"


def _must_be_one_of(value: Any, expected: Any, node: Any) -> str:
    return "" if value in expected else f"{node!r} gave {value!r}, which is none of {expected!r}"
