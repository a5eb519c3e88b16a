"""Commands that start and wait, ask the workflow's code, look at queues, and what a wrong line is answered with."""

import gzip
import json
import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.support.cli import STEPWELL, Cli, cli, server
from tests.support.processes import running

__all__ = ["cli", "server"]

_ERASE_LINE = "\x1b[2K"
_ECHO = ("--type", "Echo", "-t", "echo")


def test_execute_waits_for_the_result(cli: Cli) -> None:
    assert cli.json("execute", *_ECHO, "-w", "executed", "--input", "7") == {
        "workflow_id": "executed",
        "run_id": cli.json("describe", "executed")["info"]["execution"]["run_id"],
        "status": "COMPLETED",
        "result": [7],
    }
    assert "Started executed (run " in cli.errors[0]
    assert cli("execute", "--type", "Chain", "-t", "echo", "--input", "3") == "1\n"
    needy = ("--type", "Needy", "-t", "echo", "--input", '"/nowhere"', "--input", "1")
    assert cli("execute", *needy, code=1) == "" and "Missing: /nowhere is missing" in cli.said


def test_a_start_with_a_key_finds_the_one_that_has_it(cli: Cli) -> None:
    key = ("--dedup-key", "customer-7")
    held = cli.json("start", *_ECHO, "-w", "holder", "--input", '"wait"', *key)
    met = cli.json("start", *_ECHO, "-w", "other", *key, "--dedup-policy", "use_existing")
    assert met == {"workflow_id": "holder", "run_id": held["run_id"], "started": False}
    cli("start", *_ECHO, "-w", "other", *key, code=3)
    assert "held by workflow 'holder'" in cli.said and "the policy use_existing or cancel_existing" in cli.said
    cli("start", *_ECHO, "-w", "other", "--callback", "https://hooks.example.com/", code=3)
    assert "not among the addresses" in cli.said
    cli("signal", "holder", "--name", "finish")


def test_a_signal_and_an_update_with_start(cli: Cli) -> None:
    start = (*_ECHO, "-w", "met", "--input", '"wait"')
    signal = ("signal-with-start", *start, "--signal-name", "add", "--signal-input", "1")
    assert cli.json(*signal)["started"] is True and cli.json(*signal)["started"] is False
    update = ("update-with-start", *start, "--update-name", "change", "--update-input", '"b"')
    assert cli.json(*update, "--update-id", "mine")["result"] == ["b"]
    assert cli.json(*update, "--update-input", "2")["result"] == ["b", 2]
    refused = ("update-with-start", *start, "--update-name", "change", "--update-input", '"no"')
    assert cli(*refused, code=1) == "" and "Refused: not this" in cli.said
    assert cli.json("update-result", "met", "--update-id", "mine")["result"] == ["b"]
    cli("update", "met", "--name", "change", "--input", '"wait"', "--update-id", "slow", "--wait-for-stage", "accepted")
    assert cli("update-result", "met", "--update-id", "slow", "--timeout", "0s") == "Update slow is ACCEPTED.\n"
    cli("signal", "met", "--name", "finish")
    assert "failure" in cli.json("update-result", "met", "--update-id", "slow", code=1)
    assert "completed before the update had ended" in cli.said
    assert cli("result", "met") == "[\n  [\n    1\n  ],\n  [\n    1\n  ]\n]\n"
    assert cli("update-with-start", *start, "--update-name", "x", "--update-input", "joe", code=2) == ""
    assert """--update-input '"joe"'""" in cli.said
    assert cli("update-with-start", *start, "--update-name", "", code=2) == ""
    assert cli("signal-with-start", *start, "--signal-name", "", code=2) == ""


def test_where_the_code_waits_and_what_it_takes(cli: Cli) -> None:
    cli.start("asked", "Echo", '"wait"')
    assert "await workflow.wait_condition(lambda: self.done)" in cli("stack", "asked")
    assert "Task 'main'" in cli.json("stack", "asked")
    told = cli("metadata", "asked")
    assert "Echo" in told and all(name in told for name in ("add", "finish", "ask", "change"))
    assert [found["name"] for found in cli.json("metadata", "asked")["signals"]] == ["add", "finish"]
    cli.start("slept", "Sleeper", "0")
    cli("result", "slept")
    assert "at its end" in cli("stack", "slept")
    assert cli("metadata", "slept").count("No ") == 3
    assert cli("stack", "nobody", code=3) == "" and "no such workflow" in cli.said


def test_queues_and_the_engine(cli: Cli) -> None:
    found = cli.json("task-queue", "describe", "echo")
    assert len(found["workflow"]["pollers"]) == len(found["activity"]["pollers"]) == 1
    assert "Workers for activity tasks" in cli("task-queue", "describe", "echo")
    (worker,) = cli.json("worker", "list", "--task-queue", "echo")
    assert worker["kinds"] == ["WORKFLOW", "ACTIVITY"] and worker["worker_key"]
    identity = worker["identity"]
    assert identity in cli("worker", "list") and worker["worker_key"] in cli("worker", "describe", identity)
    assert cli("worker", "count", "--identity-prefix", identity[:3], "-t", "echo") == "1\n"
    assert cli("worker", "list", "--identity", identity + "0") == "" and "No workers." in cli.said
    assert cli("worker", "describe", "nobody", code=3) == "" and "no worker nobody" in cli.said
    cli("start", "--type", "Echo", "-t", "unpolled")
    told = cli("task-queue", "describe", "unpolled")
    assert "No worker polls unpolled" in told and "1 waiting" in told
    assert cli.json("system")["address"] == cli.address
    assert "Version" in cli("system")
    assert cli("system", address="http://127.0.0.1:1", code=4) == ""


def test_a_timeline_and_a_trace(cli: Cli, tmp_path: Path) -> None:
    """Of a run that retries for ever, then of its end; the shapes are in tests/unit/sdk/cli/test_timeline.py."""
    file = tmp_path / "file"
    cli.start("drawn", "Needy", f'"{file}"', "0")
    while ", attempt " not in (told := cli("timeline", "drawn", "--width", "80")):
        pass
    assert "activity needs_file" in told and "Missing" in told and "so far" in told
    assert max(len(line) for line in told.splitlines() if "Missing" not in line) <= 80
    assert cli("timeline", "drawn", "--ascii").isascii()
    file.touch()
    told = cli("trace", "drawn")
    assert "COMPLETED" in told and "failed, attempt" not in told
    found = cli.json("timeline", "drawn")
    assert (found["workflow"]["status"], found["bars"][0]["name"]) == ("completed", "needs_file")
    assert found["bars"][0]["attempt"] > 1
    assert cli("timeline", "nobody", code=3) == "" and "no such workflow" in cli.said
    assert cli("timeline", "drawn", "--width", "5", code=2) == ""


def test_what_a_trace_showed_stays_when_it_is_interrupted(cli: Cli) -> None:
    cli.start("watched", "Echo", '"wait"')
    ours, theirs = pty.openpty()
    command = [STEPWELL, "workflow", "trace", "watched", "--address", cli.address]
    trace = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = ""
    while "so far" not in told:
        told += os.read(ours, 4_096).decode(errors="replace")
    trace.send_signal(signal.SIGINT)
    with suppress(OSError):  # what Linux says at the end
        while part := os.read(ours, 4_096).decode(errors="replace"):
            told += part
    os.close(ours)
    assert trace.wait(30) == 130
    assert "so far" in told.rpartition(_ERASE_LINE)[2] and "Traceback" not in told


def test_children_are_drawn_below_their_parent(cli: Cli) -> None:
    cli.start("family", "Family", "2")
    told = cli("trace", "family")
    assert [line.split()[:2] for line in told.splitlines()[3:7]] == [
        ["Family", told.splitlines()[3].split()[1]],
        ["child", "family-1"],
        ["timer", "1"],
        ["child", "family-2"],
    ]
    folded = cli("trace", "family", "--fold", "completed").splitlines()[3:6]
    assert [line.split()[0] for line in folded if line] == ["Family", "child", "child"]
    assert "timer" not in cli("timeline", "family").replace("─ timer", "")
    found = cli.json("timeline", "family", "--depth", "1")
    assert [bar["child"]["bars"][0]["kind"] for bar in found["bars"]] == ["timer", "timer"]


def test_the_last_events_and_those_that_failed(cli: Cli, tmp_path: Path) -> None:
    """WC-34 on the command line: what people look for in a long history, without the rest of it."""
    cli.start("tailed", "Echo", '"wait"')
    for number in range(5):
        cli("signal", "tailed", "--name", "add", "--input", str(number))
    cli("signal", "tailed", "--name", "finish")
    cli("result", "tailed")
    events = cli.json("show", "tailed")
    assert cli.json("show", "tailed", "--tail", "3") == events[-3:]
    assert [
        json.loads(line) for line in cli("show", "tailed", "--tail", "2", "--follow", "-o", "json").splitlines()
    ] == (events[-2:])
    assert cli.json("show", "tailed", "--tail", "1000") == events
    assert cli.json("show", "tailed", "--reverse") == events[::-1]
    assert cli.json("show", "tailed", "--reverse", "--limit", "1") == events[-1:]
    assert cli.json("show", "tailed", "--reverse", "--limit", "3") == events[:-4:-1]
    assert cli("show", "tailed", "--reverse", "--follow", code=2) == "" and "cannot --follow" in cli.said
    assert cli("show", "tailed", "--reverse", "--tail", "2", code=2) == "" and "--reverse with --limit" in cli.said
    assert cli.json("show", "tailed", "--failed") == []
    assert cli("show", "tailed", "--tail", "2", "--limit", "2", code=2) == "" and "use one of them" in cli.said
    cli("execute", "--type", "Needy", "-t", "echo", "-w", "sad", "--input", '"/nowhere"', "--input", "1", code=1)
    kinds = [event["attributes"]["type"] for event in cli.json("show", "sad", "--failed")]
    assert kinds == ["ActivityTaskFailed", "WorkflowExecutionFailed"]
    assert len(cli("show", "sad", "--failed", "--tail", "1").splitlines()) == 1
    assert [event["attributes"]["type"] for event in cli.json("show", "sad", "--failed", "--tail", "2")] == kinds
    assert [event["attributes"]["type"] for event in cli.json("show", "sad", "--failed", "--reverse")] == kinds[::-1]


def test_a_tail_goes_on_with_what_comes(cli: Cli, tmp_path: Path) -> None:
    cli.start("growing", "Echo", '"wait"')
    cli("query", "growing", "--name", "ask")
    command = [STEPWELL, "workflow", "show", "growing", "--tail", "1", "--follow", "--address", cli.address]
    with running(command, tmp_path) as shown:
        shown.wait_for("Z ")
        cli("signal", "growing", "--name", "finish")
        shown.wait_for("WorkflowExecutionCompleted")
        assert shown.process.wait(30) == 0
        assert "WorkflowExecutionStarted" not in shown.text and "WorkflowExecutionSignaled" in shown.text


def test_a_history_in_a_file_becomes_a_run_elsewhere(cli: Cli, tmp_path: Path) -> None:
    for name in ("moved", "moved-too"):
        cli.start(name, "Echo", '"ship"')
        cli("result", name)
    shown = cli("show", "moved", "--output", "json")
    one, two = tmp_path / "moved.json", tmp_path / "moved-too.json.gz"
    one.write_text(shown)
    two.write_bytes(gzip.compress(cli("show", "moved-too", "--output", "json").encode()))
    there = f"sqlite:///{tmp_path / 'there.db'}"
    said = cli("import", str(two), str(one), address=there)
    assert [line.split(",")[0] for line in said.splitlines()] == ["Imported moved", "Imported moved-too"]
    assert cli("show", "moved", "--output", "json", address=there) == shown
    assert cli("import", str(one), address=there).startswith("Imported moved")  # the same import
    cli("import", str(one), code=3)
    assert "already; delete it there first" in cli.said
    assert cli("import", str(one), "--skip-existing").startswith("Passed over moved")
    assert cli("import", str(tmp_path / "none.json"), code=2) == "" and "cannot be read" in cli.said
    one.write_text("[]")
    assert cli("import", str(one), code=2) == "" and "was it cut" in cli.said


def test_an_export_is_written_and_read_back(cli: Cli, tmp_path: Path) -> None:
    cli.start("exported", "Echo", '"ship"')
    cli("result", "exported")
    query = ("--query", "WorkflowId = 'exported'")
    said = cli("export", "start", "-d", "e2e/one", *query, "--job-id", "nightly", "--wait")
    assert said.startswith("Export nightly is COMPLETED: 1 exported (")
    (info,) = cli.json("export", "list")
    assert (info["job_id"], info["exported_count"]) == ("nightly", 1)
    assert "1 exported" in cli("export", "describe", "nightly") and "nightly" in cli("export", "list")
    there = f"sqlite:///{tmp_path / 'there.db'}"
    assert cli("import", info["location"], address=there).startswith("Imported exported, run ")
    assert cli("show", "exported", "-o", "json", address=there) == cli("show", "exported", "-o", "json")
    cli("export", "stop", "nightly")
    cli("export", "start", "-d", "../up", code=3)
    assert "destination" in cli.said
    cli("export", "start", "-d", "x", "--continuous", "--wait", code=2)
    cli("export", "describe", "never", code=3)
    assert cli("import", str(tmp_path), address=there, code=2) == "" and "no histories in the folder" in cli.said
