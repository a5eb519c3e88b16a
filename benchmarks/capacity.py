"""What the reference load needs on AWS: ``docs/capacity.md``, from the counts that ``docs/cost.md`` is made of.

python benchmarks/capacity.py
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from benchmarks import capacity_model as model
from benchmarks.cost_page import BEHIND, table
from benchmarks.prices import ASSUMED
from stepwell_server.timer_sweeper.buckets import KEPT_SECONDS, Layout

PAGE = ROOT / "docs" / "capacity.md"
WAYS = (("functions", "fused"), ("functions", "queued"), ("container", "fused"), ("container", "queued"))
TIMER_ROW_BYTES = 200
"""With what DynamoDB adds to each item."""


def page() -> str:
    return "\n\n".join([_intro(), _run(), _rates(), _breaks(), _timers(), _money()]) + "\n"


def _intro() -> str:
    runs = model.STARTS * model.OPEN_SECONDS / 1e6
    return f"""# Capacity

Made by `python benchmarks/capacity.py`; a test compares this page with it. The load is that of a general design for
workflow engines: {model.STARTS:,} starts and {model.STARTS * model.EVENTS:,} events of 1 KB a second at peak,
{model.WORKFLOW_TASKS} workflow tasks and {model.ACTIVITIES} activities a run, open for two hours with {model.TIMERS}
timers each: by Little's law {runs:.0f} million open runs and {runs * model.TIMERS:.0f} million timers. Closed runs are
kept for {model.RETENTION_DAYS} days. What a run costs is counted ([cost](cost.md)); that events have 1 KB instead of
200 bytes of payload is added to the items by their size."""


def _run() -> str:
    rows = []
    for place, mode in WAYS:
        small, full = (model.run(place, mode, event_bytes=size) for size in (0, model.EVENT_BYTES))
        rows.append(
            [
                f"{mode}, {BEHIND[place]}",
                f"{small.writes:.0f}",
                f"{full.writes:.0f}",
                f"{full.reads:.0f}",
                f"{full.queue_requests:.0f}",
                f"{full.api_requests:.0f}",
            ]
        )
    head = [
        "one run",
        "write units, 200 bytes",
        "write units, 1 KB events",
        "read units",
        "requests of SQS",
        "requests",
    ]
    return f"""## One run

{table(head, rows)}

Write units contain retention, which writes every item of a closed run once more, and the record in lists."""


def _rates() -> str:
    rows = []
    for place, mode in WAYS:
        each = model.run(place, mode, event_bytes=model.EVENT_BYTES)
        writes = model.STARTS * each.writes
        gigabytes = model.stored_gigabytes(each)
        requests = model.STARTS * each.api_requests
        rows.append(
            [
                f"{mode}, {BEHIND[place]}",
                f"{writes:,.0f}",
                f"{model.STARTS * each.reads:,.0f}",
                f"{writes / model.KEY_WRITES:,.0f} and {gigabytes / model.PARTITION_GB:,.0f}",
                f"{gigabytes / 1_000:,.0f}",
                f"{requests:,.0f}",
                "" if place == "functions" else f"{requests / ASSUMED['requests per vCPU'].value:,.0f}",
                str(model.cells(place, mode)),
            ]
        )
    head = [
        "a second, at peak",
        "write units",
        "read units",
        "partitions by rate and by size",
        "TB",
        "requests",
        "vCPUs",
        "cells",
    ]
    return f"""## All of it

{table(head, rows)}

A cell is one stack: tables, stream, queues, functions or containers. Their number is what keeps each below
{model.CELLS_ROOM:.0%} of the default quotas of tables; a cell is also what fails as one. Size needs more partitions
than rate: closed runs archived to S3 within the hour and kept in the tables for a day need a seventh."""


def _breaks() -> str:
    parts = []
    for place, mode in WAYS:
        rows = [
            [
                limit.name,
                f"{limit.allows:,.0f} per {limit.of}",
                f"{limit.needed:,.0f}",
                f"{limit.times:.1f}",
                limit.one_more,
            ]
            for limit in model.limits(place, mode)
        ]
        head = ["limit", "allows", "needed", "times", "way out"]
        parts.append(f"### {mode}, {BEHIND[place]}\n\n{table(head, rows)}")
    return "\n\n".join(
        [
            "## What breaks first\n\nAll of the load in one cell, account and namespace; "
            "what is passed farthest comes first.",
            *parts,
        ]
    )


def _timers() -> str:
    open_runs = model.STARTS * model.OPEN_SECONDS
    rows = model.STARTS * (1 + model.TIMERS)
    kept = rows * KEPT_SECONDS
    terabytes = kept * TIMER_ROW_BYTES / 1e12
    return f"""## Timers

{open_runs * model.TIMERS / 1e6:.0f} million timers are {open_runs / 1e6:.0f} million armed deadlines: a run has one,
its earliest. At most {rows:,} rows a second are put (each run's first, and one for each timer),
{rows * TIMER_ROW_BYTES / 1e6:.0f} MB a second; they stay for {KEPT_SECONDS // 86_400} days after their time,
{terabytes:.1f} TB. A sweeper reads each of them once or twice, from {Layout().partitions} partitions in the first
layout; each takes {model.KEY_WRITES:,} rows a second, as deadlines of starts that came in together stand in one
bucket."""


def _money() -> str:
    rows = []
    for place, mode in WAYS:
        month = model.month(place, mode)
        rows.append([f"{mode}, {BEHIND[place]}", *(f"${part / 1_000:,.0f}k" for part in (*month, month.total))])
    return f"""## A month at the peak

{table(["dollars", *model.Month._fields, "total"], rows)}

Provisioned units, used to {model.UTILISATION:.0%}; reserved ones are cheaper by half to three quarters. The peak is
assumed to last all month: scale by how much of it does. The feed's function, logs and workers are not in it."""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
