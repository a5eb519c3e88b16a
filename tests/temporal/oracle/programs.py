"""Workflow programs by seed: data that the interpreter (``interpreter.py``) carries out and the driver helps along.

A program is a list of operations. So that two servers must write the same history for it, nothing in it is left to
chance: each branch that runs beside another stands at a *token* until the driver takes the token away, and the driver
takes one at a time, when every branch stands at one. So at most one thing happens at a time, and what it leads to has
come to rest before the next. (Local activities are not in: how many tasks they take is a matter of the SDK's timing.)
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

Operation = dict[str, Any]
Program = list[Operation]

ATTRIBUTES = {"OracleKeyword": "Keyword", "OracleInt": "Int", "OracleBool": "Bool", "OracleDouble": "Double"}
"""Search attributes that the programs set, by name."""


class _Generator:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    # --- operations that need no help

    def activity(self) -> Operation:
        operation: Operation = {"op": "activity", "name": self._name("activity")}
        operation["failures"] = self._random.choice([0, 0, 0, 1, 2])
        operation["attempts"] = self._random.choice([1, 2, 3])
        operation["permanent"] = self._maybe(0.2)
        return operation

    def slow_activity(self) -> Operation:
        """It ends by a timeout of the server's."""
        timeout = self._random.choice(["start_to_close", "heartbeat", "schedule_to_close"])
        return {"op": "slow", "name": self._name("slow"), "timeout": timeout, "attempts": self._random.choice([1, 2])}

    def unattended_activity(self) -> Operation:
        return {"op": "unattended", "name": self._name("unattended")}

    def timer(self) -> Operation:
        return {"op": "timer", "seconds": self._random.choice([0.05, 0.1, 1.0]), "summary": self._maybe(0.3)}

    def patch(self) -> Operation:
        return {"op": "patch", "name": self._name("patch"), "deprecated": self._maybe(0.3)}

    def attributes(self) -> Operation:
        chosen = self._random.sample(sorted(ATTRIBUTES), self._random.randint(1, 3))
        return {"op": "attributes", "set": {name: self._value(ATTRIBUTES[name]) for name in chosen}}

    def _value(self, kind: str) -> Any:
        if self._maybe(0.15):
            return None
        number = self._random.randint(1, 99)
        return {"Keyword": f"word {number}", "Int": number, "Bool": number > 50, "Double": number / 4}[kind]

    def memo(self) -> Operation:
        return {"op": "memo", "set": {self._random.choice("abc"): self._random.choice([1, "two", [3], None])}}

    def failing_task(self) -> Operation:
        return {"op": "failing_task", "name": self._name("failing")}

    # --- operations that stand at a token

    def gate(self) -> Operation:
        return {"op": "gate", "name": self._name("gate"), "fails": self._maybe(0.2)}

    def signal(self) -> Operation:
        return {
            "op": "signal",
            "name": self._name("signal"),
            "value": self._random.choice([None, 7, "text", {"a": [1]}]),
        }

    def update(self) -> Operation:
        kind = self._random.choice(["plain", "activity", "fails", "rejected first"])
        return {"op": "update", "name": f"{self._name('update')}:{kind}"}

    def query(self) -> Operation:
        return {"op": "query", "name": self._name("query")}

    def child(self) -> Operation:
        kind = self._random.choice(["plain", "plain", "signalled", "cancelled", "fails"])
        policy = self._random.choice(["TERMINATE", "ABANDON", "REQUEST_CANCEL"])
        operation: Operation = {"op": "child", "name": self._name("child"), "kind": kind, "policy": policy}
        first = {"signalled": "hear", "cancelled": "be_cancelled"}.get(kind)
        program = [self.gate()]
        if first == "be_cancelled":
            program = [{"op": first, "cleanup": [self.gate()]}]
        elif first:
            program = [{"op": first, "name": "hello"}, self.gate()]
        else:
            program += self._sequence(self._random.randint(0, 2), depth=2)
        if kind == "fails":
            program.append(self.failure())
        return {**operation, "program": program}

    def orphan(self) -> Operation:
        """A child that is there when its parent ends."""
        policy = self._random.choice(["TERMINATE", "ABANDON", "REQUEST_CANCEL"])
        program = [{"op": "be_cancelled", "cleanup": []}]
        return {"op": "orphan", "name": self._name("orphan"), "policy": policy, "program": program}

    def cancelled_timer(self) -> Operation:
        return {"op": "cancelled_timer", "until": self.gate()}

    def cancelled_activity(self) -> Operation:
        kind = self._random.choice(["WAIT_CANCELLATION_COMPLETED", "ABANDON"])
        return {"op": "cancelled_activity", "name": self._name("cancelled"), "kind": kind, "until": self.gate()}

    def parallel(self, depth: int) -> Operation:
        branches = []
        children = 0
        for _ in range(self._random.randint(2, 3)):
            makers: list[Callable[[], Operation]] = [self.gate, self.signal, self.update]
            if not children:
                makers.append(self.child)
            first = self._random.choice(makers)()
            children += first["op"] == "child"
            branches.append([first, *self._sequence(self._random.randint(0, 2), depth + 1)])
        return {"op": "parallel", "branches": branches}

    # --- ends

    def failure(self) -> Operation:
        return {"op": "fail", "type": self._random.choice(["Broken", None]), "final": self._maybe(0.5)}

    def cancellation(self) -> Operation:
        """Like every operation that needs the driver for the whole workflow, an end."""
        return {
            "op": "await_cancel",
            "cleanup": self._sequence(self._random.randint(0, 2), 2),
            "swallow": self._maybe(0.3),
        }

    def _sequence(self, length: int, depth: int) -> Program:
        common = [self.activity] * 4 + [self.timer, self.patch, self.attributes, self.memo, self.signal, self.update]
        rare = [self.gate, self.query, self.cancelled_timer, self.slow_activity, self.unattended_activity]
        rare += [self.failing_task, self.cancelled_activity]
        makers = common * 2 + rare
        if depth < 2:
            makers += [self.orphan] + [self.child] * 3 + [lambda: self.parallel(depth)] * 3
        return [self._random.choice(makers)() for _ in range(length)]

    def program(self) -> Program:
        program = self._sequence(self._random.randint(2, 6), 0)
        end = self._random.random()
        if end < 0.15:
            program.append(self.failure())
        elif end < 0.3:
            program.append(self.cancellation())
        elif end < 0.4:
            program.append({"op": "await_termination"})
        elif end < 0.6:
            program.append({"op": "continue_as_new", "program": self._sequence(self._random.randint(1, 3), 0)})
        return program


def generate(seed: int) -> Program:
    """The same for the same seed, everywhere."""
    return _Generator(seed).program()


def children(program: Program) -> dict[str, Operation]:
    """The operations that start children of the program's own workflow, by name, in the order of the text."""
    return {operation["name"]: operation for operation in _own(program) if operation["op"] in ("child", "orphan")}


def _own(program: Program) -> Iterator[Operation]:
    for operation in program:
        yield operation
        parts = [operation.get("cleanup", []), *operation.get("branches", [])]
        if operation["op"] == "continue_as_new":
            parts.append(operation["program"])
        for part in parts:
            yield from _own(part)
