"""What the runs came to, as it is committed, and their section of docs/temporal-compatibility.md."""

from pathlib import Path

import msgspec

from .steps import Step

FILE = Path(__file__).with_name("outcomes.json")

Outcomes = dict[str, dict[str, list[Step]]]
"""By run and server."""

_SECTION = """## Other languages

Workflows in other SDKs of Temporal, unmodified, and a Python workflow with TypeScript activities (`mixed`):
`python -m tests.temporal.polyglot`. A *replay* is that of the histories of the other steps, exported through the
server, by the SDK's own replayer.

| run | steps | Stepwell | Temporal |
|---|---|--:|--:|
"""


def read(path: Path = FILE) -> Outcomes:
    return msgspec.json.decode(path.read_bytes(), type=Outcomes)


def record(run: str, server: str, steps: list[Step], path: Path = FILE) -> None:
    known = read(path) if path.exists() else {}
    known.setdefault(run, {})[server] = steps
    path.write_bytes(msgspec.json.format(msgspec.json.encode(known, order="deterministic"), indent=1) + b"\n")


def section(known: Outcomes) -> str:
    """Empty where nothing was run."""
    if not known:
        return ""
    rows = [_row(run, servers) for run, servers in sorted(known.items())]
    failed = [
        f"- `{run}`, {step.step}: {step.reason}"
        for run, servers in sorted(known.items())
        for step in servers.get("stepwell", [])
        if not step.passed
    ]
    told = ["What failed against Stepwell:", "", *failed] if failed else ["Nothing failed."]
    return _SECTION + "\n".join([*rows, "", *told]) + "\n"


def _row(run: str, servers: dict[str, list[Step]]) -> str:
    steps = ", ".join(step.step for step in next(iter(servers.values())))
    return f"| {run} | {steps} | {_passed(servers.get('stepwell'))} | {_passed(servers.get('temporal'))} |"


def _passed(steps: list[Step] | None) -> str:
    return "not run" if steps is None else f"{sum(step.passed for step in steps)} of {len(steps)}"
