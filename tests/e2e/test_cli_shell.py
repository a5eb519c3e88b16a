"""What shells and scripts see of the command line: exit codes, completion, commands that others have added."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from stepwell.cli import main
from stepwell.cli.commands import cli as commands
from stepwell.cli.grammar import Command

from tests.support.cli import STEPWELL, Cli, cli, exit_code, server
from tests.support.processes import running

__all__ = ["cli", "server"]


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["list"]),
        (1, ["result", "failed"]),
        (2, ["list", "--nothing"]),
        (2, ["list", "--profile", "nobody"]),
        (2, ["signal", "w", "--name", "n", "--input", "joe"]),
        (3, ["describe", "nobody"]),
        (3, ["start", "--type", "Echo", "-t", "", "-w", "w"]),
    ],
)
def test_exit_codes(cli: Cli, code: int, arguments: list[str]) -> None:
    """As the guide's table has them; 4 and 130 are below."""
    if code == 1:
        cli.start("failed", "Needy", '"/nowhere"', "1")
    told = cli(*arguments, code=code)
    assert code == 0 or (told == "" and "Error: " in cli.said)


def test_an_engine_that_is_not_there_and_an_interrupt(cli: Cli, tmp_path: Path) -> None:
    assert cli("list", code=4, address="http://127.0.0.1:9") == "" and "stepwell dev" in cli.said
    cli.start("for-ever", "Echo", '"wait"')
    with running([STEPWELL, "workflow", "execute", *_again("for-ever"), "--address", cli.address], tmp_path) as waits:
        waits.wait_for("Started for-ever")
        waits.process.send_signal(signal.SIGINT)
        assert waits.process.wait(30) == 130
        assert "Traceback" not in waits.text
    assert cli.json("describe", "for-ever")["info"]["status"] == "RUNNING"
    cli("signal", "for-ever", "--name", "finish")


def _again(workflow_id: str) -> list[str]:
    return ["--type", "Echo", "-t", "echo", "-w", workflow_id, "--id-conflict-policy", "use_existing"]


def test_a_bug_is_a_sentence_and_shows_its_stack_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("broken")
    def broken() -> None:
        raise KeyError("x\x1b")

    monkeypatch.setitem(commands.commands, "broken", broken)
    assert exit_code(["broken"]) == 5
    said = capsys.readouterr()
    assert "this is a bug in stepwell" in said.err and "KeyError" in said.err and "Traceback" not in said.err
    monkeypatch.setenv("STEPWELL_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["broken"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_STEPWELL_COMPLETE" in script and "stepwell" in script
    found = shutil.which(shell)
    if found is not None:
        ended = subprocess.run([found, "-n"], input=script, capture_output=True, text=True, timeout=30, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.fixture
def completed(tmp_path: Path) -> Callable[[str], list[str]]:
    """What bash offers behind a line; nothing may ask an engine."""
    file = tmp_path / "stepwell.toml"
    file.write_text('[profile.prod]\naddress = "http://127.0.0.1:9"\n[profile.test]\n', "utf-8")
    (tmp_path / "stepwell-lint").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "stepwell-lint").chmod(0o755)
    path = f"{STEPWELL.parent}{os.pathsep}{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "STEPWELL_CONFIG": str(file), "PATH": path}

    def complete(line: str) -> list[str]:
        words = [f"'{word}'" for word in line.split(" ")]
        script = "\n".join(
            [
                "source <(stepwell completion bash)",
                f"COMP_WORDS=({' '.join(words)})",
                f"COMP_CWORD={len(words) - 1}",
                "_stepwell_completion stepwell",
                "printf '%s\\n' \"${COMPREPLY[@]}\"",
            ]
        )
        bash = shutil.which("bash") or "bash"
        ended = subprocess.run([bash, "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True)
        assert "rror" not in ended.stderr, ended.stderr
        return ended.stdout.split()

    return complete


def test_bash_completes_commands_options_and_values(completed: Callable[[str], list[str]]) -> None:
    assert completed("stepwell workf") == ["workflow"]
    assert completed("stepwell workflow st") == ["stack", "start"]
    assert "--id-conflict-policy" in completed("stepwell workflow start --id")
    assert completed("stepwell workflow list --status runn") == ["running"]
    assert completed("stepwell workflow list --profile ") == ["prod", "test"]
    assert completed("stepwell config set ad") == ["address"]


def _extension(folder: Path, verb: str) -> None:
    program = folder / f"stepwell-{verb}"
    program.write_text('#!/bin/sh\necho "$0:$@"\nexit 7\n', "utf-8")
    program.chmod(0o755)


def test_programs_on_the_path_are_commands_and_ours_go_first(tmp_path: Path) -> None:
    for verb in ("hello", "workflow", "bad name"):
        _extension(tmp_path, verb)
    (tmp_path / "stepwell-notes").write_text("no program", "utf-8")
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([STEPWELL, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)

    ended = run("hello", "--help", "a b", "-x")
    assert (ended.returncode, ended.stdout) == (7, f"{tmp_path}/stepwell-hello:--help a b -x\n")
    assert "Start, watch and steer workflows" in run("workflow", "--help").stdout
    told = "".join(run("--help").stdout.split())
    assert str(tmp_path / "stepwell-hello") in told and "notes" not in told and "badname" not in told
    for wrong in ("notes", "../hello", "bye"):
        ended = run(wrong)
        assert ended.returncode == 2 and "No such command" in ended.stderr


def _all(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        return [found for name, sub in command.commands.items() for found in _all(sub, f"{path} {name}")]
    return [(path, command)]


_COMMANDS = dict(_all(commands, "stepwell"))


@pytest.mark.parametrize("path", _COMMANDS)
def test_every_command_says_what_it_does(path: str) -> None:
    command = _COMMANDS[path]
    assert command.help and command.get_short_help_str().endswith(".")
    handed_over = command.context_settings.get("ignore_unknown_options")
    assert handed_over or isinstance(command, Command), path
    options = {name for one in command.params for name in one.opts}
    quiet = {"stepwell completion", "stepwell config set", "stepwell config delete"}
    assert handed_over or "--output" in options or path in quiet, path
