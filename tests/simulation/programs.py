"""Workflow programs drawn from the seed, as plain data: trees of ``[operation, ...]`` lists that travel as a workflow's
input. ``acceptance`` says what their results may be."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Node = list[Any]
Spec = dict[str, Any]

DEPTH = 2
_CANCELLATIONS = ("ABANDON", "TRY_CANCEL", "WAIT_CANCELLATION_COMPLETED", "WAIT_CANCELLATION_REQUESTED")


@dataclass(frozen=True)
class Program:
    root: Node
    signals_needed: int
    """The program ends only after this many signals."""
    buggy: bool
    """A workflow task fails until the rough time is over."""
    runs: int = 1
    """How many runs of its chain it takes."""
    attempts: int = 0
    """Of the workflow, by its retry policy."""
    failures: int = 0
    """So many attempts fail."""
    cron: bool = False
    """It runs every minute until somebody ends it."""

    @property
    def goes_on(self) -> bool:
        """In other runs than its first."""
        return self.runs > 1 or self.attempts > 1 or self.cron


class ProgramMaker:
    """``queue`` names the activity queue that programs may send work to besides their own."""

    def __init__(
        self,
        random: Random,
        activity_queue: str,
        *,
        chains: bool = False,
        others: bool = False,
        locals: bool = False,
        repeats: bool = False,
        late: bool = False,
        sessions: bool = False,
        waits_for: Sequence[str] | None = None,
    ) -> None:
        self._random = random
        self._activity_queue = activity_queue
        self._chains = chains
        self._others = others
        """Whether programs start children and signal other workflows."""
        self._unattended = False
        """Nobody sends it the signals that it would wait for, and it has no children."""
        self._children = 0
        self._shared = 0
        """So many have an id that other programs use too; in one program no two have the same, or a reset of it would
        find the one where it asks for the other."""
        self._locals = locals
        self._repeats = repeats
        self._late = late
        self._sessions = sessions
        self._waits_for = waits_for
        """Workflows whose end it may wait for; it also attaches to children, and has some of its own retried."""
        self._activities = 0
        self._signals = 0

    def make(self) -> Program:
        self._signals = self._activities = self._children = self._shared = 0
        if self._repeats and self._random.random() < 0.8:
            return self._repeated()
        if self._chains and self._random.random() < 0.8:
            return self._chain()
        nodes = [self._node(DEPTH) for _ in range(self._random.randint(1, 4))]
        if self._others and self._random.random() < 0.25:
            nodes.append(self._child(then="rash", shared=True))
        buggy = self._random.random() < 0.06
        if buggy:
            nodes.insert(self._random.randint(0, len(nodes)), ["bug"])
        return Program(["seq", nodes], self._signals, buggy)

    def _chain(self) -> Program:
        """Goes on as another run behind each segment, some after a while; leaves activities behind."""
        segments: list[Node] = []
        for _ in range(self._random.randint(2, 6)):
            nodes = [self._node(DEPTH) for _ in range(self._random.randint(0, 2))]
            if self._random.random() < 0.3:
                nodes.append(["leave", {**self._plain(), "duration": self._seconds(0.0, 10.0)}])
            backoff = self._seconds(0.5, 20.0) if self._random.random() < 0.2 else 0.0
            segments.append([backoff, ["seq", nodes]])
        return Program(["chain", segments], self._signals, buggy=False, runs=len(segments))

    def _repeated(self) -> Program:
        """Fails some times and is tried again, perhaps not often enough; or runs by a schedule."""
        self._unattended = True
        root: Node = ["seq", [self._node(DEPTH) for _ in range(self._random.randint(1, 3))]]
        self._unattended = False
        if self._random.random() < 0.3:
            return Program(root, 0, buggy=False, cron=True)
        failures = self._random.randint(1, 3)
        attempts = failures + self._random.randint(0, 2)
        return Program(["flaky", failures, root], 0, buggy=False, attempts=attempts, failures=failures)

    def _node(self, depth: int) -> Node:
        simple = ["act"] * 6 + ["steps"] * 3 + ["sleep"] * 2 + ["signals", "wait", "entropy"]
        nested = ["gather", "gather", "first", "cancel-after"]
        if self._locals:
            simple += ["local"] * 6
        if self._others:
            nested += ["tell"] if self._unattended else ["child"] * 6 + ["tell"] * 2
        if self._waits_for is not None and not self._unattended:
            nested += ["child"] * 6 + ["await"] * (2 if self._waits_for else 0)
        simple += ["late"] * (12 if self._late else 0) + ["session"] * (8 if self._sessions else 0)
        kind = self._random.choice(simple + (nested if depth else []))
        return self._simple(kind) if kind in simple else self._nested(kind, depth)

    def _simple(self, kind: str) -> Node:
        match kind:
            case "act":
                return ["act", self._activity()]
            case "steps":
                return ["seq", [["act", self._plain()] for _ in range(self._random.randint(2, 6))]]
            case "sleep":
                return ["sleep", self._seconds(0.0, 40.0)]
            case "signals" if self._unattended:  # nobody sends it any
                return ["sleep", self._seconds(0.0, 10.0)]
            case "signals":
                self._signals += self._random.randint(1, 3)
                return ["signals", self._signals]
            case "local":
                return ["local", self._local_activity()]
            case "late":
                return ["act", self._late_activity()]
            case "session":
                return ["session", [self._plain() for _ in range(self._random.randint(1, 4))]]
            case "wait":
                return ["wait", self._random.randint(1, 4), self._seconds(0.1, 30.0)]
            case _:
                return ["entropy", self._next_activity()]

    def _nested(self, kind: str, depth: int) -> Node:
        match kind:
            case "gather":
                return ["gather", [self._node(depth - 1) for _ in range(self._random.randint(2, 4))]]
            case "first":
                return ["first", [self._racer() for _ in range(self._random.randint(2, 3))]]
            case "cancel-after":
                return ["cancel-after", self._seconds(0.0, 10.0), self._racer()]
            case "child":
                return self._child()
            case "await":
                return ["await", self._random.choice(self._waits_for or ["nobody"])]
            case _:
                return ["tell", f"wf-{self._random.randint(0, 4)}", self._random.randint(1, 4)]

    def _child(self, then: str = "", shared: bool = False) -> Node:
        """A child with a program of its own; what becomes of it while and after its parent lives is drawn as well.
        Some have an id that those of other parents may have as well."""
        random = self._random
        self._unattended = True
        self._children += 1
        number = self._children
        nodes = [self._node(1) for _ in range(random.randint(1, 2))]
        if random.random() < 0.2:
            nodes.append(["fail", "Hopeless"])
        root: Node = ["seq", nodes]
        if random.random() < 0.3:
            root = ["chain", [[0.0, ["seq", [self._node(1)]]] for _ in range(random.randint(1, 3))] + [[0.0, root]]]
        self._unattended = False
        shared = shared or random.random() < 0.25
        spec: Spec = {
            "id": f"shared/{self._shared}" if shared else f"c{number}",
            "policy": random.choice(["TERMINATE", "REQUEST_CANCEL", "ABANDON"]),
            "cancellation": random.choice(
                ["ABANDON", "TRY_CANCEL", "WAIT_CANCELLATION_COMPLETED", "WAIT_CANCELLATION_REQUESTED"]
            ),
            "then": then or random.choice(["await", "await", "leave", "cancel", "signal", "rash"]),
            "after": self._seconds(0.0, 8.0),
        }
        self._shared += shared
        if self._waits_for is not None and not then:
            root = self._other_than_plain(spec, root)
        return ["child", spec, root]

    def _other_than_plain(self, spec: Spec, root: Node) -> Node:
        """Some children have a retry policy, and some may be whoever has their id."""
        random = self._random
        if spec["id"].startswith("shared/") or random.random() < 0.2:
            spec["id"], spec["then"] = f"shared/{random.randint(0, 1)}", "attach"
        elif root[0] == "seq" and random.random() < 0.5:
            spec["then"], spec["attempts"] = "await", random.randint(2, 4)
            return ["flaky", random.randint(1, 3), root]
        return root

    def _racer(self) -> Node:
        """What may be cancelled half-way: no waiting for signals that others count on."""
        return ["act", self._activity()] if self._random.random() < 0.6 else ["sleep", self._seconds(0.0, 30.0)]

    def _next_activity(self) -> str:
        self._activities += 1
        return f"a{self._activities}"

    def _plain(self) -> Spec:
        """One that succeeds at once, as most do: what fused steps are made of."""
        return {"id": self._next_activity(), "kind": "sure", "duration": 0.0, "close": 30.0, "failures": 0}

    def _local_activity(self) -> Spec:
        """Some take longer than a workflow task may; some wait longer for their retry."""
        random = self._random
        spec = self._plain()
        spec["kind"] = random.choice(["sure", "sure", "sure", "fatal", "limited"])
        spec["failures"] = random.choice([0, 0, 0, 1, 2])
        if spec["kind"] == "limited":
            spec["attempts"] = random.randint(1, 3)
        spec["duration"] = random.choice([0.0, 0.0, self._seconds(0.0, 3.0), self._seconds(0.0, 12.0)])
        spec["threshold"] = random.choice([None, 0.2])
        return spec

    def _late_activity(self) -> Spec:
        """Its function leaves it to somebody else to end it, who fails some attempts."""
        random = self._random
        spec = {**self._plain(), "kind": "late", "failures": random.choice([0, 0, 1]), "by-id": random.random() < 0.3}
        spec["after"], spec["close"] = self._seconds(0.0, 10.0), 12.0
        if random.random() < 0.3:
            spec["heartbeat"], spec["beats"] = 5.0, random.randint(1, 4)
            spec["after"] = min(spec["after"], 3.0)
        return spec

    def _activity(self) -> Spec:
        random = self._random
        kinds = ["sure"] * 6 + ["fatal", "limited", "hang", "silent", "beating", "bounded", "unpolled"]
        spec: Spec = {"id": self._next_activity(), "kind": random.choice(kinds), "duration": 0.0, "close": 30.0}
        if random.random() < 0.3:
            spec["duration"] = self._seconds(0.0, 8.0)
        if random.random() < 0.3:
            spec["queue"] = self._activity_queue
        if random.random() < 0.3:
            spec["wait-cancel"] = True
        match spec["kind"]:
            case "sure" | "fatal":
                spec["failures"] = random.choice([0, 0, 0, 1, 2])
            case "limited":
                spec["attempts"] = random.randint(1, 3)
                spec["failures"] = random.randint(0, 3)
            case "hang" | "silent":
                spec["attempts"] = random.randint(1, 2)
                spec["close"] = self._seconds(1.0, 20.0)
                spec["heartbeat"] = self._seconds(1.0, 5.0) if spec["kind"] == "silent" else None
            case "beating":
                spec["beats"], spec["heartbeat"] = random.randint(1, 5), 6.0
                spec["duration"] = self._seconds(0.5, 2.0)
            case "bounded":
                spec["overall"] = self._seconds(2.0, 15.0)
            case "unpolled":
                spec["queue"], spec["start"] = "nobody-polls-this", self._seconds(1.0, 20.0)
        return spec

    def _seconds(self, least: float, most: float) -> float:
        return round(least + (most - least) * self._random.random() ** 2, 3)
