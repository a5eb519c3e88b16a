"""WC-33: JSON on the command line. Start, signal, query, files, standard input and what is refused are in
``tests/e2e/test_cli.py``; here is what is left: each input of each command in one strict round, and memos."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import free_port, running

STEPWELL = Path(sys.executable).with_name("stepwell")
WORKER = Path(__file__).parents[1] / "e2e" / "echo_worker.py"

TEXTS = [
    '{"A":1,"B":2}',
    '"joe"',
    "123",
    "true",
    "null",
    "[1,2]",
    '""',
    '"a=b, c\\nd \\"e\\" 😀"',
    str(2**60),
    '{"a":"\\u0000", "b":{"c":[[]]}}',
    "1.0",
    "-0.5e-3",
]
VALUES = [json.loads(text) for text in TEXTS]


def _strict(text: str) -> Any:
    """Pure JSON and nothing else; no NaN and no name twice."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in found}) == len(found), f"a name twice in {found}"
        return dict(found)

    def constant(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)


class Shell:
    """Commands as real processes, as a shell would start them."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        group = "activity" if arguments[0] == "complete" else "workflow"
        words = arguments if arguments[0] == "schedule" else (group, *arguments)
        command = [STEPWELL, *words[:2], "--address", self.address, *words[2:]]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=30, check=False, encoding="utf-8"
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("wc33")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with running([STEPWELL, "dev", "--port", str(port), "--db", ":memory:"], folder) as engine:
        engine.wait_for("is running")
        with running([sys.executable, WORKER, address], folder) as worker:
            worker.wait_for("ready")
            yield Shell(address)


def test_the_same_values_by_option_and_standard_input_in_every_command(shell: Shell) -> None:
    """Pass every value to start, signal, query, update and start with signal, by option and from standard input. The
    worker gets exactly these values, each encoded once; JSON output goes through a strict parser."""
    options = [part for text in TEXTS for part in ("--input", text)]
    shell("start", "--type", "Echo", "-t", "echo", "-w", "signalled", "--input", '"wait"')
    for number, (inputs, stdin) in enumerate(((options, ""), (["--input-file", "-"], "\n".join(TEXTS)))):
        start = ("start", "--type", "Echo", "-t", "echo", "-w", f"way-{number}", "-o", "json")
        assert _strict(shell(*start, *inputs, stdin=stdin))["workflow_id"] == f"way-{number}"
        assert _strict(shell("result", f"way-{number}", "-o", "json"))["result"] == VALUES
        assert _strict(shell("query", "signalled", "--type", "ask", *inputs, "-o", "json", stdin=stdin)) == VALUES
        update = ("update", "signalled", "--name", "change", *inputs, "-o", "json")
        assert _strict(shell(*update, stdin=stdin))["result"] == VALUES
        shell("signal", "signalled", "--name", "add", *inputs, stdin=stdin)
    start = ("start", "--type", "Echo", "-t", "echo", "-w", "signalled", "--signal", "add")
    shell(*start, *(part for text in TEXTS for part in ("--signal-input", text)))
    shell(*start, "--signal-input", "-", stdin="\n".join(TEXTS))
    shell("signal", "signalled", "--name", "finish")
    assert _strict(shell("result", "signalled", "-o", "json"))["result"] == [VALUES] * 4


def test_results_of_activities_that_are_completed_by_hand(shell: Shell) -> None:
    """The same values as results of activities that nobody runs, by option and from standard input in turns: the
    workflow gets exactly these."""
    shell("start", "--type", "Waits", "-t", "echo", "-w", "by-hand", "--input", str(len(TEXTS)))
    while len(_strict(shell("describe", "by-hand", "-o", "json"))["pending_activities"]) < len(TEXTS):
        pass
    for number, text in enumerate(TEXTS, 1):
        named = ("-w", "by-hand", "-a", str(number), "-o", "json")
        inputs, stdin = (("--input-file", "-"), text) if number % 2 else (("--input", text), "")
        said = _strict(shell("complete", *named, *inputs, stdin=stdin))
        assert said == {"workflow_id": "by-hand", "activity_ids": [str(number)]}
    assert _strict(shell("result", "by-hand", "-o", "json"))["result"] == VALUES


def test_schedules_start_with_exactly_these(shell: Shell) -> None:
    """The same values by option and from standard input; the first is pure JSON out, too."""
    options = [part for text in TEXTS for part in ("--input", text)]
    for number, (inputs, stdin) in enumerate(((options, ""), (["--input-file", "-"], "\n".join(TEXTS)))):
        create = ("schedule", "create", f"by-time-{number}", "--type", "Echo", "-t", "echo", "--trigger-immediately")
        made = _strict(shell(*create, *inputs, "--keep-original-workflow-id", "-o", "json", stdin=stdin))
        assert made == {"schedule_id": f"by-time-{number}"}
        while not _strict(shell("schedule", "describe", f"by-time-{number}", "-o", "json"))["info"].get("action_count"):
            pass
        assert _strict(shell("result", f"by-time-{number}", "-o", "json"))["result"] == VALUES
    wrong = ("schedule", "create", "never", "--type", "Echo", "-t", "echo", "--input", "joe")
    assert shell(*wrong, code=2) == ""


def test_memos_and_every_output_as_json(shell: Shell) -> None:
    """A memo's values arrive as typed; every command's JSON output is pure, with nothing else on standard output."""
    memos = [part for number, text in enumerate(TEXTS) for part in ("--memo", f"m{number}={text}")]
    shell("start", "--type", "Echo", "-t", "echo", "-w", "memo", "--input", '"wait"', *memos)
    described = _strict(shell("describe", "memo", "-o", "json"))
    found = [described["info"]["memo"][f"m{number}"] for number in range(len(TEXTS))]
    assert len(found) == len(VALUES)
    text = shell("describe", "memo")
    for number, value in enumerate(TEXTS):
        assert f"m{number}={value}".replace("\\u0000", "") in text.replace("\\u0000", ""), text
    assert _strict(shell("show", "memo", "-o", "json"))[0]["attributes"]["type"] == "WorkflowExecutionStarted"
    _strict(shell("list", "-o", "json"))
    shell("terminate", "memo")
    ended = _strict(shell("result", "memo", "-o", "json", code=1))
    assert ended["status"] == "TERMINATED"


def test_a_bare_word_is_refused_with_a_hint_by_every_command(shell: Shell) -> None:
    """``joe`` without quotes: exit code 2 and nothing on standard output, for start, signal, query and update."""
    complete, update = ("complete", "-w", "never", "-a", "1"), ("update", "never", "--name", "change")
    for command in (("signal", "never", "--name", "add"), ("query", "never", "--type", "ask"), update, complete):
        assert shell(*command, "--input", "joe", code=2) == ""
    assert shell("start", "--type", "Echo", "-t", "echo", "--input-file", "-", stdin="joe", code=2) == ""
