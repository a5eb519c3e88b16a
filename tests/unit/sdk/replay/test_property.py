"""Any workflow, any order of events: with and without cache, in another process and in replay, the same commands."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from stepwell import workflow
from stepwell.api.codec import encode_json
from stepwell.api.commands import CancelTimer, ScheduleActivityTask, StartTimer
from stepwell.exceptions import ActivityError, ApplicationError

from tests.support.histories import Driver, evict_all

SHORT = timedelta(seconds=10)


@workflow.defn
class Scripted:
    """Does what its argument says, nested as deep as that goes."""

    def __init__(self) -> None:
        self.signals: list[str] = []
        self.trace: list[str] = []

    @workflow.signal
    async def word(self, text: str) -> None:
        self.signals.append(text)
        await workflow.execute_activity("handle", text, start_to_close_timeout=SHORT)
        self.trace.append(f"handled {text}")

    @workflow.run
    async def run(self, script: list[Any]) -> list[str]:
        try:
            for number, step in enumerate(script):
                await self.do(step, str(number))
        finally:
            await asyncio.shield(workflow.execute_activity("clean_up", start_to_close_timeout=SHORT))
        return self.trace

    async def do(self, step: list[Any], path: str) -> None:  # noqa: C901 - one case for each kind of step
        kind, inner = step[0], step[1:]
        try:
            match kind:
                case "call":
                    await workflow.execute_activity("call", path, start_to_close_timeout=SHORT)
                case "sleep":
                    await workflow.sleep(inner[0])
                case "wait":
                    count = len(self.signals) + 1
                    await workflow.wait_condition(lambda: len(self.signals) >= count, timeout=5)
                case "all":
                    await asyncio.gather(*(self.do(s, f"{path}.{n}") for n, s in enumerate(inner)))
                case "group":
                    async with asyncio.TaskGroup() as group:
                        for n, s in enumerate(inner):
                            group.create_task(self.must(s, f"{path}.{n}"))
                case "first":
                    tasks = [asyncio.ensure_future(self.do(s, f"{path}.{n}")) for n, s in enumerate(inner)]
                    _, pending = await workflow.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in pending:
                        task.cancel()
                case "within":
                    async with asyncio.timeout(3):
                        await self.do(inner[0], path)
            self.trace.append(f"{path} {kind} {workflow.random().randint(0, 99)}")
        except (ActivityError, TimeoutError, ExceptionGroup) as error:
            self.trace.append(f"{path} {type(error).__name__}")

    async def must(self, step: list[Any], path: str) -> None:
        """As ``do``, but a call that fails fails the group."""
        if step[0] == "call":
            await workflow.execute_activity("call", path, start_to_close_timeout=SHORT)
        else:
            await self.do(step, path)


LEAF = st.sampled_from([["call"], ["sleep", 0], ["sleep", 2], ["wait"]])
STEP = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(lambda steps: ["all", *steps]),
        st.lists(inner, min_size=1, max_size=4).map(lambda steps: ["group", *steps]),
        st.lists(inner, min_size=1, max_size=4).map(lambda steps: ["first", *steps]),
        inner.map(lambda step: ["within", step]),
    ),
    max_leaves=6,
)


class Player:
    """Plays the engine's part as numbers say."""

    def __init__(self, script: list[Any], *, cache: bool) -> None:
        self.driver = Driver(Scripted, script, cache=cache)
        self._pending: list[tuple[str, str]] = []
        self._cancelled = False

    def note_commands(self) -> None:
        for command in self.driver.result.commands:
            if isinstance(command, ScheduleActivityTask):
                self._pending.append(("activity", command.activity_id))
            elif isinstance(command, StartTimer):
                self._pending.append(("timer", command.timer_id))
            elif isinstance(command, CancelTimer):
                self._pending.remove(("timer", command.timer_id))

    def event(self, part: int, choice: int) -> None:
        """A signal, a cancel request, or the end of something pending."""
        if part == 5:
            self.driver.history.signal("word", f"w{choice}")
        elif part == 6 and not self._cancelled and choice % 3 == 0:
            self.driver.history.cancel_requested()
            self._cancelled = True
        elif self._pending:
            self._end(*self._pending.pop(choice % len(self._pending)), choice)

    def _end(self, kind: str, number: str, choice: int) -> None:
        history = self.driver.history
        if kind == "timer":
            history.pass_time(1)
            history.timer_fired(number)
        elif choice % 4 == 0:
            history.activity_failed(number, ApplicationError(f"failed {number}"))
        else:
            history.activity_completed(number, None)


def play(script: list[Any], choices: list[int], *, cache: bool) -> Driver:
    """Two events at most before each workflow task, until the choices are used up or the run has closed."""
    player = Player(script, cache=cache)
    driver = player.driver
    driver.task()
    for choice in choices:
        player.note_commands()
        if driver.run.closed:
            break
        player.event(choice % 7, choice)
        player.event(choice // 7 % 7, choice)
        driver.task()
    return driver


CHOICES = st.lists(st.integers(0, 400), min_size=5, max_size=25)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=3), CHOICES)
def test_the_same_commands_however_they_are_computed(script: list[Any], choices: list[int]) -> None:
    cached = play(script, choices, cache=True)
    uncached = play(script, choices, cache=False)
    assert [e.attributes for e in cached.history.events] == [e.attributes for e in uncached.history.events]
    cached.replay()
    evict_all()


SCRIPT = [
    ["group", *[["call"] for _ in range(20)], ["all", ["wait"], ["within", ["call"]]]],
    ["first", ["call"], ["wait"], ["sleep", 2], ["call"]],
    ["all", ["call"], ["group", ["call"], ["wait"], ["sleep", 2]]],
]


def test_the_same_commands_in_processes_with_other_hash_seeds() -> None:
    choices = [5, 12, 8, 33, 40, 5, 61, 17, 99, 3, 4, 4, 60, 7, 81, 55, 20, 12, 44, 90, 6, 8, 10]
    program = (
        "import sys, json; from tests.unit.sdk.replay import test_property as t; "
        "d = t.play(json.loads(sys.argv[1]), json.loads(sys.argv[2]), cache=False); "
        "sys.stdout.buffer.write(t.encode_json(d.history.events)); t.evict_all()"
    )
    root = Path(__file__).parents[4]
    outputs = set()
    for seed in ("0", "1", "7"):
        ran = subprocess.run(
            [sys.executable, "-c", program, json.dumps(SCRIPT), json.dumps(choices)],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}:{root / 'sdk'}"},
            capture_output=True,
            check=True,
        )
        outputs.add(ran.stdout)
    assert len(outputs) == 1
    assert outputs.pop() == encode_json(play(SCRIPT, choices, cache=True).history.events)
