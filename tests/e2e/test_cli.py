"""The command line against a real server and worker: values arrive as typed, output is pure, exit codes tell."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import STEPWELL, Cli, cli, exit_code, server
from tests.support.processes import free_port

__all__ = ["cli", "server"]

# WC-33, and what else may be typed: the JSON text, and the value that must arrive.
VALUES: list[tuple[str, Any]] = [
    ('{"A":1,"B":2}', {"A": 1, "B": 2}),
    ('"joe"', "joe"),
    ("123", 123),
    ("true", True),
    ("null", None),
    ("[1,2]", [1, 2]),
    ('""', ""),
    ('"a=b, c\\nd \\"e\\" \\u00e9 😀"', 'a=b, c\nd "e" é 😀'),
    ('"--input"', "--input"),
    (str(2**60), 2**60),
    ("-1.5e3", -1500.0),
    (' {"spaces" : [ ] } ', {"spaces": []}),
]


def test_chains_of_runs(cli: Cli) -> None:
    cli.start("chain", "Chain", "3")
    assert cli("result", "chain") == "1\n"
    described = cli.json("describe", "chain")
    assert described["continued_execution_run_id"] and described["info"]["first_run_id"]
    before = cli("describe", "chain", "--run-id", described["info"]["first_run_id"])
    assert "Next run" in before and "CONTINUED_AS_NEW" in before
    start = ("start", "--type", "Chain", "-t", "echo", "--input", "1", "-w")
    cli(*start, "nightly", "--cron", "30 2 * * *", "--maximum-attempts", "3", "--retry-interval", "2s")
    shown = cli("describe", "nightly")
    assert "30 2 * * *" in shown and "Begins" in shown
    cli(*start, "later", "--start-delay", "1h")
    assert cli.json("describe", "later")["first_workflow_task_time"]
    assert "has not five fields" in cli(*start, "never", "--cron", "at noon", code=3) + cli.said


def test_values_arrive_as_typed_by_start(cli: Cli) -> None:
    for number, (text, value) in enumerate(VALUES):
        cli.start(f"typed-{number}", "Echo", text)
        assert cli.json("result", f"typed-{number}")["result"] == [value]
    cli.start("typed-all", "Echo", *(text for text, _ in VALUES))
    assert cli.json("result", "typed-all")["result"] == [value for _, value in VALUES]


def test_a_signal_that_starts(cli: Cli) -> None:
    options = ("--type", "Echo", "-t", "echo", "-w", "signalled", "--input", '"wait"')
    assert cli.json("start", *options, "--signal", "add", "--signal-input", "1")["started"] is True
    assert (
        cli.json("start", *options, "--signal", "add", "--signal-input", "2", "--signal-input", "3")["started"] is False
    )
    cli("signal", "signalled", "--name", "finish")
    assert cli.json("result", "signalled")["result"] == [[1], [2, 3]]
    cli("start", *options, "--signal-input", "1", code=2)


def test_updates(cli: Cli) -> None:
    cli.start("updates", "Echo", '"wait"')
    for text, value in VALUES:
        assert cli.json("update", "updates", "--name", "change", "-i", text)["result"] == [value]
    assert json.loads(cli("update", "updates", "--name", "change", "-i", "1", "-i", "2")) == [1, 2]
    cli("update", "updates", "--name", "change", "-i", '"no"', code=1)
    assert "Refused: not this" in cli.said
    first = next(line for line in cli.said.splitlines() if line.startswith("    File "))
    assert "echo_worker.py" in first and "check_change" in first, cli.said
    refused = cli.json("update", "updates", "--name", "unheard-of", "--update-id", "u", code=1)
    assert refused["stage"] == "COMPLETED" and "no handler for update 'unheard-of'" in refused["failure"]["message"]
    waiting = ("update", "updates", "--name", "change", "-i", '"wait"', "--update-id", "slow")
    assert cli.json(*waiting, "--wait-for-stage", "ACCEPTED")["stage"] == "ACCEPTED"
    (pending,) = cli.json("describe", "updates")["pending_updates"]
    assert (pending["update_id"], pending["stage"]) == ("slow", "ACCEPTED")
    assert "slow" in cli("describe", "updates") and "ACCEPTED" in cli("describe", "updates")
    assert cli(*waiting, "--timeout", "200ms") == "Update slow is ACCEPTED.\n"
    cli("signal", "--workflow-id", "updates", "--name", "finish")
    cli("result", "-w", "updates")
    ended = cli.json(*waiting, code=1)
    assert "has completed before the update had ended" in ended["failure"]["message"]
    cli("update", "updates", "--name", "change", "--update-id", "", code=2)
    cli("update", "updates", "--name", "change", code=3)
    assert "is closed (COMPLETED)" in cli.said


def test_values_arrive_as_typed_by_signal_and_query(cli: Cli) -> None:
    cli.start("signals", "Echo", '"wait"')
    for text, value in VALUES:
        assert cli.json("query", "signals", "--type", "ask", "-i", text) == [value]
        cli("signal", "signals", "--name", "add", "-i", text)
    cli("signal", "signals", "--name", "add", "-i", "1", "-i", "2", "-i", "3")
    cli("signal", "signals", "--name", "finish")
    assert cli.json("result", "signals")["result"] == [*([value] for _, value in VALUES), [1, 2, 3]]


def test_values_from_files_and_standard_input(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several = '{"A": 1,\n "B": 2}\n"joe" null\n[1,\n2]'
    expected = [{"A": 1, "B": 2}, "joe", None, [1, 2]]
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_bytes(b"\xef\xbb\xbf" + several.encode())
    two.write_text("3")
    start = ("start", "--type", "Echo", "-t", "echo", "-w")
    cli(*start, "from-files", "--input-file", str(one), "--input-file", str(two))
    assert cli.json("result", "from-files")["result"] == [*expected, 3]
    for option in ("--input-file", "--input"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(several.encode())))
        cli(*start, f"from-stdin{option}", option, "-")
        assert cli.json("result", f"from-stdin{option}")["result"] == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("joe", ["line 1, column 1", "Hint", "--input '\"joe\"'"]),
        ("two words", ["line 1, column 1", "--input '\"two words\"'"]),
        ("{A:1}", ["line 1, column 2", "single quotes around the whole value"]),
        ("{'A':1}", ["line 1, column 2", "single quotes"]),
        ('{"A":1,}', ["line 1, column"]),
        ('{"A":\n  nope}', ["line 2, column 3", "  nope}"]),
        ("1 2", ["line 1, column 2", "repeat the option"]),
        ("1,2", ["line 1, column 2"]),
        ("NaN", ["NaN", "line 1, column 1"]),
        ("[-Infinity]", ["-Infinity", "line 1, column 2"]),
        ("", ["empty", "'\"\"'"]),
        ('"\\ud800"', ["half of a pair"]),
        ("[" * 100_000, ["nested too deeply"]),
    ],
)
def test_what_is_no_json_is_refused_with_position_and_hint(cli: Cli, text: str, said: list[str]) -> None:
    assert cli.start("never", "Echo", text, code=2) == ""
    for part in said:
        assert part in cli.said
    cli("describe", "never", code=3)


def test_other_mistakes_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    start = ("start", "--type", "Echo", "-t", "echo", "-w", "never")
    (tmp_path / "latin").write_bytes(b'"\xe9"')
    (tmp_path / "empty").touch()
    for arguments, said in (
        ((*start, "--input-file", str(tmp_path / "none")), "cannot be read"),
        ((*start, "--input-file", str(tmp_path / "latin")), "not UTF-8 at byte 1"),
        ((*start, "--input-file", str(tmp_path / "empty")), "holds no JSON value"),
        ((*start, "--input", "1", "--input-file", "-"), "use one of them"),
        ((*start, "--input-file", "-", "--input-file", "-"), "only once"),
        ((*start, "--run-timeout", "soon"), "no duration"),
        ((*start, "--id-reuse-policy", "maybe"), "maybe"),
        ((*start, "--memo", "x"), "name=JSON"),
        ((*start, "--static-summary", "x" * 401), "--static-summary has 401 bytes, the limit is 400"),
        ((*start[:-1], ""), "--workflow-id is empty"),
        ((*start, "--dedup-key", ""), "--dedup-key is empty"),
        ((*start, "--dedup-ttl", "1h"), "are for a --dedup-key"),
        (("start",), "--type"),
        (("describe",), "WORKFLOW_ID"),
        (("nothing",), "nothing"),
        (("list", "--limit", "0"), "--limit"),
    ):
        cli(*arguments, code=2)
        assert said in cli.said
    cli("list", code=2, address="ftp://x")
    assert "ftp://x" in cli.said


def test_what_the_engine_refuses(cli: Cli) -> None:
    cli.start("taken", "Echo", '"wait"')
    for arguments, said in (
        (("describe", "nobody"), "nobody"),
        (("show", "nobody"), "nobody"),
        (("result", "nobody"), "nobody"),
        (("signal", "nobody", "--name", "x"), "no such workflow"),
        (("terminate", "taken", "--run-id", "not-its-run"), "taken"),
        (("query", "taken", "--type", "unknown"), "it has: ask"),
        (("start", "--type", "Echo", "-t", "echo", "-w", "taken"), "--id-conflict-policy use_existing"),
        (
            ("start", "--type", "Echo", "-t", "echo", "-w", "taken", "--id-conflict-policy", "fail"),
            "another --workflow-id",
        ),
        (("start", "--type", "Echo", "-t", "echo", "-w", "x" * 1_001), "limit of 1000"),
        (("start", "--type", "Echo", "-t", "echo", "--run-timeout", "0s"), "workflow_run_timeout"),
    ):
        cli(*arguments, code=3)
        assert said in cli.said
    cli("terminate", "taken", "--reason", "no more")


def test_an_engine_out_of_reach(cli: Cli) -> None:
    cli("list", code=4, address=f"http://127.0.0.1:{free_port()}")
    assert "stepwell dev" in cli.said
    assert "--address" in cli.said


def test_ends_that_are_not_good(cli: Cli) -> None:
    cli.start("fails", "Needy", '"nowhere"', "2")
    assert cli("result", "fails", code=1) == ""
    assert "fails ended FAILED" in cli.said
    assert "caused by Missing: nowhere is missing" in cli.said
    ended = cli.json("result", "fails", code=1)
    assert (ended["status"], ended["failure"]["cause"]["message"]) == ("FAILED", "nowhere is missing")
    cli.start("ends", "Echo", '"wait"')
    cli("terminate", "ends", "--reason", "no more")
    assert cli.json("result", "ends", code=1)["reason"] == "no more"
    assert "no more" in cli.said


def test_reset(cli: Cli) -> None:
    cli.start("resets", "Echo", '"wait"')
    cli("query", "resets", "--type", "ask")
    first = cli.json("describe", "resets")["info"]["execution"]["run_id"]
    cli("terminate", "resets")
    cli("reset", "resets", "--build-id", "", code=2)
    cli("reset", "resets", "--event-id", "2", code=3)
    assert "WorkflowTaskScheduled" in cli.said
    cli("reset", "resets", "--event-id", "3", "--type", "FIRST_WORKFLOW_TASK", code=3)
    assert "exactly one" in cli.said
    made = cli.json("reset", "resets", "--type", "first_workflow_task", "--reason", "try again", "--request-id", "r")
    assert made["workflow_id"] == "resets" and made["run_id"] != first
    assert made["run_id"] in cli("reset", "resets", "--run-id", first, "--request-id", "r")
    assert "try again" in cli("show", "resets")
    cli("reset", "resets", "--input", "1", code=2)
    assert "--signal" in cli.said
    cli("reset", "resets", "--signal", "brought", "--input", '"with it"')
    assert "brought" in cli("show", "resets")
    cli("terminate", "resets")


def test_describe_shows_what_is_pending_and_what_fails(cli: Cli) -> None:
    cli.start("needy", "Needy", '"nowhere"', "0")
    cli.start("broken", "Broken")
    cli("start", "--type", "Echo", "-t", "nobody-here", "-w", "unserved", "--memo", 'customer="joe"')
    needy = _until(cli, "needy", "Missing: nowhere is missing")
    assert "needs_file" in needy
    assert "Pending activities" in needy
    assert all(line == line.rstrip() for line in needy.splitlines())
    assert next(line for line in needy.splitlines() if "ATTEMPT" in line).split()[-2:] == ["LAST", "FAILURE"]
    broken = _until(cli, "broken", "WORKFLOW_WORKER_UNHANDLED_FAILURE")
    assert "RuntimeError: this code is wrong" in broken
    assert "echo_worker.py" in broken
    unserved = cli("describe", "unserved")
    assert "No worker polls task queue nobody-here" in unserved
    assert 'customer="joe"' in unserved
    described = cli.json("describe", "needy")
    assert described["pending_activities"][0]["activity_type"] == "needs_file"
    for workflow_id in ("needy", "broken", "unserved"):
        cli("terminate", workflow_id)


def _until(cli: Cli, workflow_id: str, text: str) -> str:
    for _ in range(100):
        shown = cli("describe", workflow_id)
        if text in shown:
            return shown
    raise AssertionError(f"{text!r} did not come: {shown}")


def test_show_and_follow(cli: Cli) -> None:
    cli.start("shown", "Sleeper", "1")
    followed = [json.loads(line) for line in cli("show", "shown", "--follow", "-o", "json").splitlines()]
    assert followed[-1]["attributes"]["type"] == "WorkflowExecutionCompleted"
    assert cli.json("show", "shown") == followed
    assert cli.json("show", "shown", "--limit", "3") == followed[:3]
    lines = cli("show", "shown").splitlines()
    assert len(lines) == len(followed)
    assert "TimerFired" in "".join(lines)
    assert 'result=("awake")' in lines[-1]
    assert cli("show", "shown", "--follow").splitlines() == lines
    assert "request_id=" in cli("show", "shown", "--full")


def test_lists(cli: Cli) -> None:
    for number in range(3):
        cli.start(f"listed-{number}", "Sleeper", "0")
        cli("result", f"listed-{number}")
    found = cli.json("list", "--type", "Sleeper", "--status", "completed", "--limit", "2")
    assert [info["workflow_type"] for info in found] == ["Sleeper", "Sleeper"]
    assert found[0]["execution"]["workflow_id"] == "listed-2"
    table = cli("list", "--type", "Sleeper", "--limit", "2")
    assert len(table.splitlines()) == 3
    assert "more than 2" in cli.said
    assert cli.json("list", "--type", "' OR ''='") == []
    rows = cli("scan", "--query", "WorkflowType = 'Sleeper' AND WorkflowId STARTS_WITH 'listed-'").splitlines()
    assert [row.split()[0] for row in rows] == ["COMPLETED"] * 3
    assert sorted(row.split()[2] for row in rows) == [f"listed-{number}" for number in range(3)]
    assert cli.json("scan", "--limit", "1")["execution"]["run_id"]
    assert cli("list", "--type", "' OR ''='") == ""
    some = ("--id-prefix", "listed-", "--started-from", "-1h", "-w", "listed-0", "-w", "listed-1", "-w", "else")
    assert cli.json("count", *some, "--status", "completed") == {"count": 2, "groups": []}
    ordered = cli.json("list", *some, "--query", "NOT WorkflowId = 'listed-1' ORDER BY StartTime")
    assert [info["execution"]["workflow_id"] for info in ordered] == ["listed-0"]
    assert cli("scan", "--parent", "o'brien", "--search-attribute", 'StepwellFailureCause="o\'brien"') == ""


def test_awkward_ids_and_text_that_would_steer_a_terminal(cli: Cli) -> None:
    """WC-28: each is found by exactly this id. WC-25: text is readable, and harmless."""
    for workflow_id in ("o'brien", 'say "hi"', "back\\slash", "50%_off", "a b", "日本", "a/b?c#d", "[red]x[/red]"):
        cli.start(workflow_id, "Echo", '"\\u001b[31m ünïcödé 😀 [bold]"')
        assert cli.json("result", workflow_id)["workflow_id"] == workflow_id
        assert workflow_id in cli("describe", workflow_id)
        shown = cli("show", workflow_id)
        assert "\x1b" not in shown
        assert "ünïcödé 😀 [bold]" in shown
    cli.start("-dashed", "Echo", "1")
    assert json.loads(cli("result", "-o", "json", "--", "-dashed"))["result"] == [1]


def test_a_file_is_looked_at_beside_its_owner(cli: Cli, server: tuple[str, Path]) -> None:
    address = f"sqlite:///{server[1]}"
    cli.start("beside", "Echo", '"wait"')
    cli("query", "beside", "--name", "ask")
    assert "beside" in cli("list", address=address)
    described = cli("describe", "beside", address=address)
    assert "RUNNING" in described
    assert "No worker polls" not in described
    assert "WorkflowExecutionStarted" in cli("show", "beside", address=address)
    cli("signal", "beside", "--name", "finish")
    assert cli("result", "beside", address=address) == "[]\n"
    cli("signal", "beside", "--name", "x", code=3, address=address)
    assert "in use by process" in cli.said
    cli("list", code=3, address=f"sqlite:///{server[1]}.none")
    assert "no such file" in cli.said


def test_a_file_without_owner(cli: Cli, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'own.db'}"
    cli.start("own", "Echo", address=address)
    assert "own" in cli("list", address=address)
    cli("terminate", "own", address=address)
    cli("result", "own", code=1, address=address)


def test_without_the_server_distribution(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("stepwell.cli.commands.entry_points", lambda group: ())
    assert exit_code(["dev"]) == 2
    assert "python -m pip install 'stepwell-server'" in capfdbinary.readouterr().err.decode()


def test_a_reader_that_has_seen_enough(cli: Cli, server: tuple[str, Path]) -> None:
    cli.start("piped", "Echo", *["1"] * 50)
    cli("result", "piped")
    command = f"{STEPWELL} workflow show piped --full --address {server[0]} | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
