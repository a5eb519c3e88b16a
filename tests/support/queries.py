"""Generated runs and generated queries with what they should find, said without any of the product's code.

A query comes as its text and as a function of a run's plain values, built side by side from the same draws.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.payloads import Payload

from stepwell_server.history.commit import Commit
from stepwell_server.history.state import ParentLink
from stepwell_server.history.tasks import RecordVisibility
from stepwell_server.visibility.attributes import Text, Value, ValueType
from tests.support.sample_commits import EPOCH, SampleRun

TYPES = {
    "Customer": ValueType.KEYWORD,
    "Amount": ValueType.INT,
    "Weight": ValueType.DOUBLE,
    "Rush": ValueType.BOOL,
    "Due": ValueType.DATETIME,
    "Tags": ValueType.KEYWORD_LIST,
    "Note": ValueType.TEXT,
}
AWKWARD = (
    "o'brien",
    "'edge'",
    "end'",
    'say "hi"',
    "back\\slash",
    "50%_off",
    "a b",
    "日本",
    "x;--",
    "a/b?c#d",
    "\x01\x00",
)
"""WC-28."""

_CUSTOMERS = (*AWKWARD, "acme", "acme corp", "Acme", "")
_WORDS = ("fragile", "Glass", "urgent", "naïve", "50", "x_y", "")
_TYPES = ("order", "refund", "order's end")
Plain = dict[str, Any]
Test = Callable[[Plain], bool]


@dataclass
class Run:
    commits: list[Commit]
    values: Plain
    """Plain values by attribute; what is missing is NULL."""


@dataclass
class Asked:
    text: str
    test: Test
    order: str = ""
    descending: bool = True

    def expected(self, runs: list[Run]) -> list[str]:
        """Run ids in the order of the answer."""
        found = [run.values for run in runs if self.test(run.values)]

        def place(values: Plain) -> tuple[Any, ...]:
            return values["StartTime"], values["RunId"]

        if not self.order:
            return [values["RunId"] for values in sorted(found, key=place, reverse=True)]
        having = [values for values in found if values.get(self.order) is not None]
        lacking = [values for values in found if values.get(self.order) is None]
        having.sort(key=lambda values: (values[self.order], *place(values)), reverse=self.descending)
        lacking.sort(key=place, reverse=self.descending)
        return [values["RunId"] for values in (*having, *lacking)]


def seen(run: Run) -> dict[str, Value]:
    """As the product's evaluator takes it."""
    return {name: _as_value(name, value) for name, value in run.values.items()}


def _as_value(name: str, value: Value) -> Value:
    if isinstance(value, list):
        return tuple(value)
    return Text(value) if name == "Note" else value


def payload(kind: ValueType, value: Any) -> Payload:
    if isinstance(value, datetime):
        value = value.isoformat()
    return Payload(metadata={"encoding": "json/plain", "type": kind.value}, data=json.dumps(value).encode())


def runs(random: Random, count: int, *, namespace: str = "default") -> list[Run]:
    """With many equal start times."""
    return [_run(random, number, namespace) for number in range(count)]


def _run(random: Random, number: int, namespace: str) -> Run:
    start_time = EPOCH + timedelta(seconds=random.randrange(6), microseconds=random.choice([0, 0, 1]))
    workflow_type = random.choice(_TYPES)
    workflow_id = f"{random.choice(AWKWARD[:-1])}-{number}" if random.random() < 0.4 else f"run-{number}"
    sample = SampleRun(
        number, namespace=namespace, workflow_id=workflow_id, start_time=start_time, workflow_type=workflow_type
    )
    custom = _custom(random)
    start = next(sample.commits())
    values: Plain = {
        "WorkflowId": workflow_id,
        "RunId": sample.run_id,
        "WorkflowType": workflow_type,
        "TaskQueue": random.choice(["orders", "other"]),
        "ExecutionStatus": "RUNNING",
        "StartTime": start_time,
        "ExecutionTime": start_time,
        "HistoryLength": random.randrange(2, 30),
        "HistorySizeBytes": random.choice([610, 1_000, 5_000]),
        "StateTransitionCount": 1,
        "RootWorkflowId": workflow_id,
        "RootRunId": sample.run_id,
        **custom,
    }
    state = msgspec.structs.replace(start.state, history_size=values["HistorySizeBytes"])
    if random.random() < 0.2:
        values["ParentWorkflowId"], values["ParentRunId"] = random.choice(["mother", "o'father"]), "p-1"
        link = ParentLink(
            namespace=namespace, workflow_id=values["ParentWorkflowId"], run_id="p-1", initiated_event_id=5
        )
        state = msgspec.structs.replace(state, parent=link)
    if random.random() < 0.2:
        values["ExecutionTime"] = start_time + timedelta(seconds=30)
        state = msgspec.structs.replace(state, execution_time=values["ExecutionTime"])
    record = RecordVisibility(
        run_id=sample.run_id,
        workflow_type=workflow_type,
        task_queue=values["TaskQueue"],
        status=WorkflowExecutionStatus.RUNNING,
        start_time=start_time,
        history_length=values["HistoryLength"],
        search_attributes={name: payload(TYPES[name], value) for name, value in custom.items()},
    )
    commits = [msgspec.structs.replace(start, state=state, tasks=(record,))]
    if random.random() < 0.6:
        commits.append(_closed(random, commits[0], record, values))
    return Run(commits, values)


def _closed(random: Random, start: Commit, record: RecordVisibility, values: Plain) -> Commit:
    """Behind its close, some runs are found by other values than at their start."""
    status = random.choice(["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMED_OUT", "CONTINUED_AS_NEW"])
    close_time = values["ExecutionTime"] + timedelta(seconds=random.randrange(40))
    values |= {
        "ExecutionStatus": status,
        "CloseTime": close_time,
        "ExecutionDuration": int((close_time - values["ExecutionTime"]).total_seconds() * 10**9),
        "StateTransitionCount": 2,
    }
    if random.random() < 0.3:
        for name in TYPES:
            values.pop(name, None)
        values |= (custom := _custom(random))
        record = msgspec.structs.replace(
            record, search_attributes={name: payload(TYPES[name], value) for name, value in custom.items()}
        )
    record = msgspec.structs.replace(record, status=WorkflowExecutionStatus(status), close_time=close_time)
    state = msgspec.structs.replace(
        start.state, seq=2, status=WorkflowExecutionStatus(status), close_time=close_time, owed=()
    )
    return msgspec.structs.replace(
        start, seq=2, base=1, nonce=start.nonce + "x", events=(), state=state, tasks=(record,), deadline=None
    )


def _custom(random: Random) -> Plain:
    drawn: Plain = {
        "Customer": random.choice(_CUSTOMERS),
        "Amount": random.choice([-5, 0, 1, 7, 10**15]),
        "Weight": random.choice([-1.5, 0.0, 0.1, 2.5]),
        "Rush": random.random() < 0.5,
        "Due": EPOCH + timedelta(hours=random.randrange(4)),
        "Tags": random.sample([*AWKWARD[:4], "red", "blue"], random.randrange(1, 4)),
        "Note": " ".join(random.choice(_WORDS) for _ in range(3)),
    }
    return {name: value for name, value in drawn.items() if random.random() < 0.6}


# --- queries ---

_SYSTEM_VALUES: dict[str, Callable[[Random], Any]] = {
    "WorkflowId": lambda random: f"run-{random.randrange(60)}",
    "WorkflowType": lambda random: random.choice(_TYPES),
    "TaskQueue": lambda random: random.choice(["orders", "none"]),
    "StartTime": lambda random: EPOCH + timedelta(seconds=random.randrange(6)),
    "ExecutionTime": lambda random: EPOCH + timedelta(seconds=random.randrange(40)),
    "CloseTime": lambda random: EPOCH + timedelta(seconds=random.randrange(40)),
    "HistoryLength": lambda random: random.randrange(30),
    "HistorySizeBytes": lambda random: random.choice([610, 1_000]),
    "StateTransitionCount": lambda random: random.choice([1, 2]),
    "ExecutionDuration": lambda random: random.randrange(40) * 10**9,
    "ParentWorkflowId": lambda random: random.choice(["mother", "o'father", "x"]),
    "ParentRunId": lambda random: "p-1",
    "RootWorkflowId": lambda random: f"run-{random.randrange(60)}",
}
_STATUSES = {"RUNNING": "Running", "COMPLETED": "completed", "FAILED": "FAILED", "TIMED_OUT": "TimedOut"}


def queries(random: Random, *, orders: tuple[str, ...] = ("StartTime",)) -> Iterator[Asked]:
    """``orders``: attributes by which the store can order."""
    while True:
        text, test = _filter(random, 3) if random.random() < 0.95 else ("", lambda values: True)
        if random.random() < 0.35:
            order, descending = random.choice(orders), random.random() < 0.5
            direction = " DESC" if descending else random.choice(["", " asc"])
            yield Asked(f"{text} ORDER BY {order}{direction}", test, order, descending)
        else:
            yield Asked(text, test)


def _filter(random: Random, depth: int) -> tuple[str, Test]:
    kind = random.random()
    if depth == 0 or kind < 0.4:
        return _predicate(random)
    if kind < 0.5:
        text, test = _filter(random, depth - 1)
        return f"NOT ({text})", lambda values: not test(values)
    parts = [_filter(random, depth - 1) for _ in range(random.randrange(2, 4))]
    joined = random.choice([" AND ", " and ", " OR "])
    text = joined.join(f"({part})" for part, _ in parts)
    if joined.strip().upper() == "AND":
        return text, lambda values: all(test(values) for _, test in parts)
    return text, lambda values: any(test(values) for _, test in parts)


def _predicate(random: Random) -> tuple[str, Test]:
    if random.random() < 0.15:
        status = random.choice(list(_STATUSES))
        negated = random.random() < 0.3
        text = f"ExecutionStatus {'!=' if negated else '='} '{_STATUSES[status]}'"
        return text, lambda values: (values["ExecutionStatus"] == status) is not negated
    if random.random() < 0.5:
        name = random.choice(list(_SYSTEM_VALUES))
        return _of_scalar(random, name, lambda: _SYSTEM_VALUES[name](random))
    name = random.choice(list(TYPES))
    if random.random() < 0.1:
        negated = random.random() < 0.5
        text = f"{name} IS {'NOT ' if negated else ''}NULL"
        return text, lambda values: (values.get(name) is None) is not negated
    if name == "Note":
        return _of_text(random)
    if name == "Tags":
        return _of_list(random)
    if name == "Rush":
        wanted = random.random() < 0.5
        return f"Rush = {str(wanted).lower()}", lambda values: values.get("Rush") is wanted
    return _of_scalar(random, name, lambda: _custom_value(random, name))


def _custom_value(random: Random, name: str) -> Any:
    while (drawn := _custom(random).get(name)) is None:
        pass
    return drawn


def _of_scalar(random: Random, name: str, draw: Callable[[], Any]) -> tuple[str, Test]:
    kind = random.choice(["compare", "compare", "equal", "in", "between", "starts"])
    if kind == "starts" and isinstance(draw(), str):
        beginning = str(draw())[: random.randrange(1, 5)]
        negated = random.random() < 0.3
        text = f"{name} {'NOT ' if negated else ''}STARTS_WITH {quoted(random, beginning)}"
        return text, lambda values: str(values.get(name) or "\ud800").startswith(beginning) is not negated
    if kind == "in":
        several = [draw() for _ in range(random.randrange(1, 4))]
        negated = random.random() < 0.3
        listed = ", ".join(literal(random, value) for value in several)
        text = f"{name} {'not in' if negated else 'IN'} ({listed})"
        return text, lambda values: (values.get(name) in several) is not negated
    if kind == "between":
        low, high = draw(), draw()
        text = f"{name} BETWEEN {literal(random, low)} AND {literal(random, high)}"
        return text, lambda values: values.get(name) is not None and low <= values[name] <= high
    value = draw()
    if kind == "equal":
        negated = random.random() < 0.3
        text = f"{name} {'!=' if negated else '='} {literal(random, value)}"
        return text, lambda values: (values.get(name) == value) is not negated
    operator = random.choice(["<", "<=", ">", ">="])
    compared: dict[str, Callable[[Any], bool]] = {
        "<": lambda own: own < value,
        "<=": lambda own: own <= value,
        ">": lambda own: own > value,
        ">=": lambda own: own >= value,
    }
    text = f"{name} {operator} {literal(random, value)}"
    return text, lambda values: values.get(name) is not None and compared[operator](values[name])


def _of_list(random: Random) -> tuple[str, Test]:
    several = random.sample([*AWKWARD[:4], "red", "blue", "none"], random.randrange(1, 3))
    negated = random.random() < 0.3
    if len(several) == 1:
        text = f"Tags {'<>' if negated else '='} {quoted(random, several[0])}"
    else:
        text = f"Tags {'NOT ' if negated else ''}IN ({', '.join(quoted(random, each) for each in several)})"
    return text, lambda values: bool(set(values.get("Tags") or ()) & set(several)) is not negated


def _of_text(random: Random) -> tuple[str, Test]:
    """A word has letters, digits and underlines; a text is found by each, whatever its case."""
    said = " ".join(random.choice([*_WORDS[:-1], "none"]) for _ in range(random.randrange(1, 3)))
    wanted = {word.lower() for word in re.findall(r"\w+", said)}
    negated = random.random() < 0.3

    def test(values: Plain) -> bool:
        own = {word.lower() for word in re.findall(r"\w+", values.get("Note") or "")}
        return bool(own & wanted) is not negated

    return f"Note {'!=' if negated else '='} {quoted(random, said.upper())}", test


def literal(random: Random, value: Any) -> str:
    if isinstance(value, datetime):
        zone = random.choice([UTC, EPOCH.tzinfo])
        return f"'{value.astimezone(zone).isoformat()}'"
    return quoted(random, value) if isinstance(value, str) else str(value)


def quoted(random: Random, text: str) -> str:
    quote = random.choice(["'", '"'])
    return quote + text.replace(quote, quote * 2) + quote
