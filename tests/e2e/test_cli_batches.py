"""``--query`` of a verb makes it a batch: counted, asked for, waited for, with a report of what failed."""

import os
import pty
import subprocess

import pytest

from tests.support.cli import STEPWELL, Cli, cli, server

__all__ = ["cli", "server"]


def waiting(cli: Cli, name: str, count: int) -> str:
    """Starts so many workflows that wait; the query that finds them."""
    for number in range(count):
        cli.start(f"{name}-{number}", "Echo", '"wait"')
    return f"WorkflowType = 'Echo' AND WorkflowId STARTS_WITH '{name}-'"


def statuses(cli: Cli, query: str) -> list[str]:
    return sorted(found["status"] for found in cli.json("list", "--query", query))


def test_verbs_for_all_that_a_query_finds(cli: Cli) -> None:
    query = waiting(cli, "many", 3)
    told = cli("signal", "-q", query, "--name", "add", "--input", "7", "--yes")
    assert "is COMPLETED: 3 done, 0 failed, of 3 found." in told and "has begun" in cli.said
    cli("signal", "many-0", "--name", "finish")
    assert cli("result", "many-0") == "[\n  [\n    7\n  ]\n]\n"
    cli("update-options", "-q", query, "--priority-key", "1", "--yes")
    told = cli("show", "many-1", "--output", "json")
    assert '"priority_key":1' in told and '"priority_key":1' not in cli("show", "many-0", "--output", "json")
    ended = cli.json("cancel", "-q", query, "--reason", "all", "--yes", "--job-id", "cancels")
    assert (ended["info"]["job_id"], ended["info"]["complete_operation_count"]) == ("cancels", 2)
    assert ended["reason"] == "all"
    cli("terminate", "-q", query, "--yes", "--rps", "50")
    reset = cli("reset", "-q", query, "--type", "first_workflow_task", "--yes")
    assert "COMPLETED: 3 done" in reset
    cli("delete", "-q", query, "--yes")
    assert statuses(cli, query) == []


def test_a_batch_is_looked_at_and_ended(cli: Cli) -> None:
    query = waiting(cli, "slow", 4)
    told = cli("terminate", "-q", query, "--yes", "--rps", "0.5", "--job-id", "slowly", "--detach")
    assert "batch describe slowly" in told
    told = cli("batch", "describe", "slowly")
    assert "TERMINATE" in told and "RUNNING" in told and "STARTS_WITH 'slow-'" in told
    cli("batch", "terminate", "slowly", "--reason", "enough")
    while cli.json("batch", "describe", "slowly")["info"]["state"] == "RUNNING":
        pass
    told = cli("batch", "describe", "slowly")
    assert "STOPPED" in told and "enough" in told
    over = cli("batch", "terminate", "slowly", code=3)
    assert over == "" and "batch slowly is over: it is STOPPED" in cli.said and "nothing was done" in cli.said
    assert "slowly" in [info["job_id"] for info in cli.json("batch", "list")]
    assert "STOPPED" in cli("batch", "list")
    assert cli("batch", "describe", "nobody", code=3) == "" and "no batch" in cli.said
    cli("delete", "-q", query, "--yes")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 3)])
def test_who_is_at_a_terminal_is_asked_with_the_count(cli: Cli, answer: str, code: int) -> None:
    query = waiting(cli, f"asked-{answer}", 2)
    ours, theirs = pty.openpty()
    command = [STEPWELL, "workflow", "terminate", "--address", cli.address, "-q", query]
    asked = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = ""
    while "[y/N]" not in told:
        told += os.read(ours, 1_024).decode()
    assert "finds 2 workflows now. Terminate what it finds?" in told
    os.write(ours, f"{answer}\n".encode())
    while True:
        try:
            part = os.read(ours, 1_024).decode(errors="replace")
        except OSError:  # what Linux says at the end
            part = ""
        if not part:
            break
        told += part
    os.close(ours)
    assert asked.wait(30) == code
    assert statuses(cli, query) == (["TERMINATED"] * 2 if answer == "y" else ["RUNNING"] * 2)
    assert ("nothing was done" in told) == (answer == "n") and "Traceback" not in told


def test_mistakes_change_nothing(cli: Cli) -> None:
    query = waiting(cli, "safe", 1)
    for arguments, code, said in (
        (("terminate", "-q", query), 2, "finds 1 workflow now. Nobody is here to be asked; --yes"),
        (("terminate", "-q", "WorkflowType = 'Echo", "--yes"), 3, "column 16"),
        (("terminate", "-q", "Colour = 'red'", "--yes"), 3, "Colour"),
        (("terminate", "-q", " ", "--yes"), 2, "--query is empty"),
        (("terminate", "safe-0", "-q", query, "--yes"), 2, "both given"),
        (("terminate", "safe-0", "--yes"), 2, "--query"),
        (("terminate", "-q", query, "--yes", "--rps", "51"), 2, "--rps"),
        (("terminate", "-q", query, "--yes", "--job-id", ""), 2, "--job-id is empty"),
        (("terminate",), 2, "Missing argument 'WORKFLOW_ID', or --query"),
        (("terminate", "a", "-w", "b"), 2, "use one"),
        (("signal", "-q", query, "--name", "add", "--yes", "--request-id", "x"), 2, "--job-id is for a batch"),
        (("reset", "-q", query, "--yes", "--event-id", "4"), 2, "--event-id"),
        (("update-options", "safe-0"), 2, "--restore-priority alone"),
    ):
        assert cli(*arguments, code=code) == ""
        assert said in cli.said, cli.said
    assert statuses(cli, query) == ["RUNNING"]
    cli("update-options", "safe-0", "--fairness-key", "k")
    cli("update-options", "safe-0", "--restore-priority")
    cli("terminate", "safe-0")


def test_a_namespace_is_deleted_when_somebody_is_sure(cli: Cli) -> None:
    cli("namespace", "register", "short")
    assert cli("namespace", "delete", "short", code=2) == "" and "--yes" in cli.said
    assert cli("namespace", "delete", "short", "--yes", code=3) == "" and "deprecate it first" in cli.said
    cli("namespace", "deprecate", "short")
    assert cli.json("namespace", "delete", "short", "--yes")["namespace"] == "short"
    assert cli("namespace", "describe", "short", code=3) == ""
