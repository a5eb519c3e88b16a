"""What a script says of its steps, on lines of JSON."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

LIMIT = 300.0

STEPS = ("activity", "timer", "signal", "query", "update", "child", "continue-as-new", "replay")
"""What each language's script runs. The last one replays, by the SDK's replayer, the histories of the others."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    step: str
    passed: bool
    reason: str = ""


async def run_script(command: Sequence[str], folder: Path) -> list[Step]:
    """The steps that the script told of, in order; those of :data:`STEPS` that it was silent about have failed."""
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(LIMIT):
            output, _ = await process.communicate()
        ended = f"the script ended with exit code {process.returncode}"
    except TimeoutError:
        process.kill()
        output, ended = (await process.communicate())[0], f"the script has not ended in {LIMIT:.0f} s"
    return complete(output, ended)


def complete(output: bytes, ended: str) -> list[Step]:
    """Other lines than those of steps are what the SDK logs."""
    lines = (line for line in output.splitlines() if line.startswith(b'{"step"'))
    told = {step.step: step for step in (msgspec.json.decode(line, type=Step) for line in lines)}
    silent = f"nothing was told of it; {ended}"
    return [told.get(step, Step(step=step, passed=False, reason=silent)) for step in STEPS]
