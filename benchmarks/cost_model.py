"""Dollars from counts. Pure; ``counted.json`` has the counts, ``prices`` the rest."""

import json
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.prices import ASSUMED, MONTH_HOURS, PRICES

COUNTED = Path(__file__).with_name("counted.json")
MODES = ("fused", "eager", "queued")
PLACES = ("functions", "container")
ITEM_OVERHEAD = 100
"""Bytes that DynamoDB adds to each item it stores."""

Counts = dict[str, Any]


def counted() -> dict[str, dict[str, Counts]]:
    """By place and name, as ``benchmarks/cost.py --count`` left them."""
    found: dict[str, dict[str, Counts]] = json.loads(COUNTED.read_text(encoding="utf-8"))
    return found


def units(counts: Counts, what: str) -> float:
    return float(sum(counts[what].values()))


class Dollars(NamedTuple):
    """Per million."""

    writes: float
    retention: float
    reads: float
    queues: float
    api: float
    processes: float
    storage: float

    @property
    def total(self) -> float:
        return sum(self)

    def scaled(self, factor: float) -> "Dollars":
        return Dollars(*(part * factor for part in self))

    def minus(self, other: "Dollars") -> "Dollars":
        return Dollars(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def function_call(kind: str) -> float:
    """Dollars per million calls."""
    seconds = ASSUMED[f"{kind} ms"].value / 1_000
    return PRICES["call"].dollars + 1e6 * seconds * ASSUMED[f"{kind} GB"].value * PRICES["gb-second"].dollars


def container_request() -> float:
    """Dollars per million requests to a busy container."""
    hour = PRICES["vcpu-hour"].dollars + 2 * PRICES["gb-hour"].dollars
    return 1e6 * hour / 3_600 / ASSUMED["requests per vCPU"].value


def dollars(place: str, counts: Counts) -> Dollars:
    """Of a million times what was counted."""
    written, requests = counts["writes"], units(counts, "api")
    marking = written.get("exec update_item", 0)
    puts = {name: size for name, size in counts["stored"].items() if name.endswith("put_item")}
    items = sum(counts["calls"][name] for name in puts)
    gigabytes = (sum(puts.values()) + ITEM_OVERHEAD * items) * 1e6 / 1e9
    functions = place == "functions"
    return Dollars(
        writes=(units(counts, "writes") - marking) * PRICES["write"].dollars,
        retention=marking * PRICES["write"].dollars,
        reads=units(counts, "reads") * PRICES["read"].dollars,
        queues=units(counts, "sqs") * PRICES["sqs"].dollars,
        api=requests * PRICES["http-api"].dollars if functions else 0.0,
        processes=(
            requests * function_call("api") + units(counts, "functions") * function_call("event")
            if functions
            else requests * container_request()
        ),
        storage=gigabytes * PRICES["table"].dollars * ASSUMED["retention days"].value / 30.4,
    )


def run(place: str, mode: str, activities: int) -> Dollars:
    return dollars(place, counted()[place][f"{mode} {activities}"])


def step(place: str, mode: str) -> Dollars:
    """One more activity in sequence: a ninth of what a run of ten costs more than a run of one."""
    return run(place, mode, 10).minus(run(place, mode, 1)).scaled(1 / 9)


VARIES = 40
"""Bytes by which items of the same step differ, with ids and how well payloads compress."""


def late_step(place: str) -> float:
    """A fused step of a long run: what it has more of than the first is a second unit, in the item and for retention,
    as soon as its item may have more than one."""
    item = counted()[place]["late fused step"]["stored"]["exec put_item"]
    return step(place, "fused").total + 2 * (ceil((item + VARIES) / 1_024) - 1) * PRICES["write"].dollars


class Other(NamedTuple):
    name: str
    one: float
    ten: float
    step: float


def others() -> list[Other]:
    """At list price, for the same payloads; compute of the user's own code is left out everywhere."""
    transition, action = PRICES["transition"].dollars, PRICES["action"].dollars
    payloads = 2 * 200 * 1e6 / 1e9 * PRICES["durable-gb"].dollars
    operation = PRICES["durable-operation"].dollars + payloads
    return [
        Other("Step Functions Standard", 2 * transition, 11 * transition, transition),
        Other("Lambda durable functions", 2 * operation, 11 * operation, operation),
        Other("Temporal Cloud", 2 * action, 11 * action, action),
    ]


class Idle(NamedTuple):
    what: str
    month: float


ALARMS = 12
TICK_READS, TICK_WRITES = 31, 4
"""Units of a minute's tick: what its tests allow."""

HOUR_UNITS = 16
"""Read, and written, besides with each hour: the cursors of the timers that are far ahead."""


def idle() -> list[Idle]:
    """An installation of functions in which nothing happens."""
    minutes = MONTH_HOURS * 60
    receives = MONTH_HOURS * 3_600 / 20
    tick = (TICK_READS * PRICES["read"].dollars + TICK_WRITES * PRICES["write"].dollars + function_call("tick")) / 1e6
    hour = HOUR_UNITS * (PRICES["read"].dollars + PRICES["write"].dollars) / 1e6
    poll = receives * PRICES["sqs"].dollars / 1e6
    return [
        Idle(f"the minute's tick: {TICK_READS} strong reads, {TICK_WRITES} writes, a call", minutes * tick),
        Idle(f"the hour's tick: {HOUR_UNITS} strong reads and {HOUR_UNITS} writes more", MONTH_HOURS * hour),
        Idle("receives on the queue of deadlines", ASSUMED["poll loops"].value * poll),
        Idle(f"{ALARMS} alarms", ALARMS * PRICES["alarm"].dollars),
    ]


def idle_worker() -> float:
    """A month of one worker that waits for workflow tasks and activities at one partition of each."""
    return 2 * MONTH_HOURS * 3_600 / 20 * PRICES["sqs"].dollars / 1e6
