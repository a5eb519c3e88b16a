"""How much of everything the reference load needs: arithmetic on counted runs, list prices and limits of AWS. Pure.

A run of six activities lies between the counted ones of one and of ten. Events of the reference have 1 KB, the counted
ones fewer bytes: the rest is spread evenly over the run's commits and items.
"""

from math import ceil
from typing import NamedTuple

from benchmarks import cost_model as cost
from benchmarks.prices import MONTH_HOURS, PRICES
from stepwell_server.adapters.aws.visibility_rows import INDEX_PARTITIONS
from stepwell_server.timer_sweeper.buckets import Layout

STARTS = 5_000
EVENTS = 20
EVENT_BYTES = 1_024
OPEN_SECONDS = 7_200
TIMERS = 2
ACTIVITIES = 6
WORKFLOW_TASKS = 8
RETENTION_DAYS = 7
TASK_SECONDS = 2.0
"""For which a message is in flight: the longer of a workflow task and an activity, as the study behind this assumes."""

UTILISATION = 0.7
"""Of provisioned units."""

KEY_WRITES = 1_000
"""Write units per second of one partition of a table."""

PARTITION_GB = 10
TABLE_WRITES = 40_000
"""Default quota of a table, in write units per second; adjustable."""

API_REQUESTS = 10_000
"""Default quota of an account's HTTP APIs per second; adjustable."""

CONCURRENCY = 1_000
"""Default quota of calls of functions at the same time; adjustable."""

IN_FLIGHT = 120_000
"""Messages of one standard queue that were received and not deleted."""

CELLS_ROOM = 0.8
"""How full of its quota a cell is at peak."""


class Run(NamedTuple):
    """What one run of the reference load costs."""

    exec_writes: float
    other_writes: float
    reads: float
    queue_requests: float
    queued_tasks: float
    api_requests: float
    stored_bytes: float

    @property
    def writes(self) -> float:
        return self.exec_writes + self.other_writes


def _between(place: str, mode: str, what: str, key: str = "") -> float:
    """Of a run of ``ACTIVITIES`` activities."""
    one, ten = (cost.counted()[place][f"{mode} {count}"][what] for count in (1, 10))
    small, large = (each.get(key, 0) if key else sum(each.values()) for each in (one, ten))
    return float(small + (large - small) * (ACTIVITIES - 1) / 9)


def run(place: str, mode: str, *, event_bytes: int) -> Run:
    """``event_bytes``: of each event; 0 is as counted, with payloads of 200 bytes."""
    puts = _between(place, mode, "calls", "exec put_item")
    stored = _between(place, mode, "stored", "exec put_item")
    counted_events = ACTIVITIES * 2 * 200 + 400
    bytes_each = stored / puts + max(EVENTS * event_bytes - counted_events, 0) / puts
    units = ceil(bytes_each / 1_024)
    timers = TIMERS * 2  # a row and a commit each
    others = _between(place, mode, "writes", "vis put_item") + _between(place, mode, "writes", "timer put_item")
    queued = ACTIVITIES + WORKFLOW_TASKS if mode == "queued" else 1
    return Run(
        exec_writes=2 * puts * units + TIMERS,  # each item once more, for retention
        other_writes=others + timers - TIMERS,
        reads=_between(place, mode, "reads"),
        queue_requests=_between(place, mode, "sqs"),
        queued_tasks=queued if place == "functions" else 0,
        api_requests=_between(place, mode, "api"),
        stored_bytes=puts * (bytes_each + cost.ITEM_OVERHEAD),
    )


class Limit(NamedTuple):
    """``allows`` and ``needed`` per second, or at the same time; ``one_more`` is the way out."""

    name: str
    allows: float
    needed: float
    of: str
    one_more: str

    @property
    def times(self) -> float:
        return self.needed / self.allows


def limits(place: str, mode: str) -> list[Limit]:
    """Those that are passed farthest first."""
    each = run(place, mode, event_bytes=EVENT_BYTES)
    rows = STARTS * (1 + TIMERS)
    found = [
        Limit("writes of the table exec", TABLE_WRITES, STARTS * each.exec_writes, "cell", "more cells"),
        Limit(
            "rows of timers in one bucket of ten seconds",
            Layout().partitions * KEY_WRITES,
            rows,
            "cell",
            "more `timer_partitions`, or more cells",
        ),
        Limit(
            "starts and ends in the index of lists",
            INDEX_PARTITIONS * KEY_WRITES,
            2 * STARTS,
            "namespace",
            "more namespaces or cells; more partitions of the index need a release",
        ),
    ]
    if place == "functions":
        calls = STARTS * each.api_requests
        found += [
            Limit(
                "requests of the HTTP API",
                API_REQUESTS,
                calls,
                "account",
                "a higher quota, more accounts, or containers",
            ),
            Limit(
                "calls of the API's function at the same time",
                CONCURRENCY,
                calls * cost.ASSUMED["api ms"].value / 1_000,
                "account",
                "a higher quota",
            ),
        ]
        if mode == "queued":
            found.append(
                Limit(
                    "messages in flight",
                    IN_FLIGHT,
                    STARTS * each.queued_tasks * TASK_SECONDS,
                    "partition of a task queue",
                    "more partitions, or more task queues",
                )
            )
    return sorted(found, key=lambda limit: -limit.times)


def cells(place: str, mode: str) -> int:
    """Of tables at default quotas, filled to ``CELLS_ROOM``."""
    of_cells = [limit for limit in limits(place, mode) if limit.of == "cell"]
    return max(ceil(limit.times / CELLS_ROOM) for limit in of_cells)


class Month(NamedTuple):
    """Dollars a month of running at the peak all the time."""

    writes: float
    reads: float
    queues: float
    api: float
    processes: float
    storage: float

    @property
    def total(self) -> float:
        return sum(self)


def month(place: str, mode: str) -> Month:
    each = run(place, mode, event_bytes=EVENT_BYTES)
    runs = STARTS * MONTH_HOURS * 3_600 / 1e6
    requests = runs * each.api_requests
    functions = place == "functions"
    hours = MONTH_HOURS / UTILISATION
    return Month(
        writes=STARTS * each.writes * PRICES["wcu-hour"].dollars * hours,
        reads=STARTS * each.reads * PRICES["rcu-hour"].dollars * hours,
        queues=runs * each.queue_requests * PRICES["sqs"].dollars,
        api=requests * PRICES["http-api"].dollars if functions else 0.0,
        processes=requests * (cost.function_call("api") if functions else cost.container_request()),
        storage=stored_gigabytes(each) * PRICES["table"].dollars,
    )


def stored_gigabytes(each: Run) -> float:
    """Open runs at half of their length, and closed ones for as long as they are kept."""
    return STARTS * (OPEN_SECONDS / 2 + RETENTION_DAYS * 86_400) * each.stored_bytes / 1e9
