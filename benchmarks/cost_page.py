"""The text of ``docs/cost.md``."""

from collections.abc import Iterable, Sequence

from benchmarks import cost_model as model
from benchmarks.cost_model import MODES, PLACES, Counts, Dollars
from benchmarks.prices import ASSUMED, MONTH_HOURS, PRICES

LATE = "late fused step"
STEP_TARGETS = {"functions": 3.40, "container": 2.20}
IDLE_TARGET = 2.00
BEHIND = {"functions": "HTTP API and functions", "container": "a container"}

BUDGETS = {
    "start": "3 units, 1 strong read",
    "fused step": "2 to 3 units, 1 request",
    "late fused step": "as the first",
    "eager step": "",
    "queued step": "8 units",
    "signal": "2 units",
    "task of a signal": "2 units",
    "timer": "6 units",
    "local activity": "no write of its own",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page() -> str:
    return "\n\n".join([_intro(), _runs(), _targets(), _parts(), _operations(), _idle(), _limits(), _data()]) + "\n"


def _intro() -> str:
    return """# What runs cost on AWS

Made by `python benchmarks/cost.py` from counted requests (`benchmarks/counted.json`) and list prices
(`benchmarks/prices.py`); a test compares this page with them, and another counts again. Arguments and results have 200
bytes each. Counted is all that a run causes: its requests, the feed behind them, its record in lists, its deadlines
until they fire with nothing left to do, and retention. Units of DynamoDB are by the size of the items that were sent.

**fused**: the worker sends an activity's result together with what the workflow does about it, and gets the next
activity with the answer. **eager**: the activity comes with the answer; its result goes back alone. **queued**: every
task goes through a task queue."""


def _runs() -> str:
    rows = []
    for mode in MODES:
        for place in PLACES:
            one, ten, step = (
                model.run(place, mode, 1).total,
                model.run(place, mode, 10).total,
                model.step(place, mode).total,
            )
            rows.append([f"{mode}, behind {BEHIND[place]}", *map(_money, (one, ten, step))])
    rows += [[other.name, *map(_money, (other.one, other.ten, other.step))] for other in model.others()]
    head = ["dollars per million", "runs of 1 activity", "runs of 10", "one more step"]
    return f"""## Runs

{table(head, rows)}

Code of users (workers, functions, activities) is left out everywhere. Step Functions counts n + 1 transitions, durable
functions n + 1 operations and what they write, Temporal Cloud n + 1 actions at its first price step. Not in the table,
and far cheaper for short flows that may run at least once: Step Functions Express.

**Plainly**: fused steps are cheaper than all of these. Behind functions, runs whose tasks go through queues cost more
than Lambda durable functions, and eager ones somewhat more: there, calls of the API are what one pays for."""


def _targets() -> str:
    rows = []
    for place, target in STEP_TARGETS.items():
        step = model.step(place, "fused").total
        rows.append([f"fused step behind {BEHIND[place]}", f"<= {_money(target)}", _money(step), _met(step, target)])
        late = model.late_step(place)
        rows.append(
            [
                f"the same, two units (late in a run; {place})",
                f"<= {_money(target)}",
                _money(late),
                _met(late, target),
            ]
        )
    month = sum(each.month for each in model.idle())
    rows.append(["idle, a month", f"<= {_money(IDLE_TARGET)}", _money(month), _met(month, IDLE_TARGET)])
    return f"""## Targets

{table(["", "target", "counted", ""], rows)}"""


def _parts() -> str:
    rows = []
    for place in PLACES:
        for mode in MODES:
            step = model.step(place, mode)
            rows.append([f"{mode}, {place}", *map(_money, step), _money(step.total)])
    return f"""## Where a step's dollars go

Dollars per million steps.

{table(["", *Dollars._fields, "total"], rows)}

Behind functions calls are the largest part, so what saves most is fewer of them. `retention` marks each item of a
closed run, so that its table deletes it: as many units as the items have. The time cannot be set when an item is
written, since it is not known then ([why](architecture/aws.md#retention))."""


def _operations() -> str:
    counts = model.counted()
    rows = []
    for name, budget in BUDGETS.items():
        cells = [_written(counts[place][name]) for place in PLACES]
        rows.append([name, *cells, budget])
    fan_outs = sorted(name for name in counts["functions"] if name.startswith("fan-out"))
    for name in fan_outs:
        rows.append([name, *(_written(counts[place][name]) for place in PLACES), "2 an activity, and O(batches)"])
    return f"""## Operations

Write units / read units / requests of client and worker / requests of SQS. Behind functions no two calls in a row are
answered by the same process, so nothing is in memory; the container is one process. Retention and records in lists are
counted with the fan-outs alone, which are whole runs; the timer's count has the firing of its start's deadline, too.

{table(["", *PLACES, "budget (writes)"], rows)}"""


def _written(counts: Counts) -> str:
    numbers = [model.units(counts, what) for what in ("writes", "reads", "api", "sqs")]
    return " / ".join(f"{number:g}" for number in numbers)


def _idle() -> str:
    rows = [[each.what, _money(each.month)] for each in model.idle()]
    rows.append(["together", _money(sum(each.month for each in model.idle()))])
    free = sum(each.month for each in model.idle()[:1]) + 2 * PRICES["alarm"].dollars
    containers = 2 * MONTH_HOURS * (PRICES["vcpu-hour"].dollars + 2 * PRICES["gb-hour"].dollars)
    reader = 4 * 3_600 * MONTH_HOURS / 1e6 * PRICES["streams"].dollars
    return f"""## Idle

An installation of functions in which nothing happens, a month:

{table(["", "dollars"], rows)}

Each idle worker adds {_money(model.idle_worker())} of receives. AWS's free tiers that do not end (ten alarms, a
million requests of SQS) make the sum {_money(free)}. The key of task tokens is a standard parameter of Systems Manager,
which costs nothing; as a secret (`token_secret`) it is {_money(PRICES["secret"].dollars)}. A customer's own KMS key is
$1 more. Containers do not scale to zero: two of 1 vCPU and 2 GB are {_money(containers)}, a balancer about $20, the
reader of the stream, which looks four times a second, {_money(reader)} a shard, and a sweeper of four partitions
$6.60."""


def _limits() -> str:
    small, large = (model.counted()["functions"][f"fan-out of {size}"] for size in (10, 30))
    more = {what: (model.units(large, what) - model.units(small, what)) / 20 for what in ("writes", "reads")}
    sizes = [model.counted()["functions"][name]["stored"]["exec put_item"] for name in ("fused step", LATE)]
    return f"""## What the counts leave out, and what they show

- **The item of a fused step grows** from {sizes[0]:,} to {sizes[1]:,} bytes, because numbers in it (events, commits)
  get longer, and stays there: so near to one unit that longer names need a second one, which the targets above show.
- **Fan-outs read more than they write.** One more activity of a fan-out costs {more["writes"]:.1f} write units
  and {more["reads"]:.1f} read units here, where a workflow task follows when all have ended. Each workflow task that
  comes in between reads the items of all activities that are still open, when it begins and when it is answered; so a
  wide fan-out whose results come in one by one reads in the square of its width.
- A signal that meets a process which believes in an older state loses a write (1 unit, counted above behind functions)
  and reads again.
- Callers who wait for a result behind a container make it read twice a second: 2 units a second and waiting call.
- The feed's function is counted with one or two commits a call, as at low rates; with larger batches it costs less.
- Blobs, archives, logs, metrics and traffic between zones are not counted. A kilobyte of logs per call would cost as
  much as the writes."""


def _data() -> str:
    prices = [[f"${price.dollars:g}", price.of, price.source, price.read] for price in PRICES.values()]
    assumed = [[f"{each.value:g}", each.of] for each in ASSUMED.values()]
    return f"""## Prices and assumptions

{table(["price", "per", "source", "read"], prices)}

{table(["assumed", "what"], assumed)}"""


def _met(value: float, target: float) -> str:
    return "met" if value <= target else f"**missed by {_money(value - target)}**"


def _money(value: float) -> str:
    return f"${value:,.2f}"
