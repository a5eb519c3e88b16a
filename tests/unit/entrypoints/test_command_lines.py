"""What is wrong with a command line of the server's is said as by the rest of ``stepwell``."""

import pytest

from stepwell_server.entrypoints.aws_bootstrap import main as aws
from stepwell_server.entrypoints.backup import main as backup
from stepwell_server.entrypoints.command_lines import worded
from stepwell_server.entrypoints.dev import main as dev
from stepwell_server.entrypoints.server import main as server


@pytest.mark.parametrize(
    ("command", "line", "said"),
    [
        (dev, "--port 99999", "Invalid value for '--port': '99999' is no port; give a number from 0 to 65535."),
        (dev, "--port", "Option '--port' requires an argument."),
        (dev, "--bogus", "No such option '--bogus'."),
        (dev, "there", "Got unexpected extra argument ('there')."),
        (dev, "--log-level loud", "Invalid value for '--log-level': 'loud' is not one of "),
        (server, "--db x --aws", "'--aws' does not go with '--db'; use one of them."),
        (backup, "", "Missing argument 'COPY'."),
        (aws, "", "Missing argument 'COMMAND'."),
        (aws, "bootstap", "No such command 'bootstap'. Use one of "),
    ],
)
def test_three_lines_and_what_is_wrong(
    command: object, line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(line.split())  # type: ignore[operator]
    assert ended.value.code == 2
    usage, way_out, empty, error = capsys.readouterr().err.splitlines()
    name = usage.removeprefix("Usage: ").split(" [OPTIONS]")[0]
    assert name.startswith("stepwell ") and way_out == f"Try '{name} --help' for help." and empty == ""
    assert error.startswith(f"Error: {said}")


def test_what_has_no_words_of_its_own_is_a_sentence() -> None:
    assert worded("this is odd.") == "This is odd."


@pytest.mark.parametrize(
    ("command", "line", "usage"),
    [
        (dev, "--help", "Usage: stepwell dev [OPTIONS]"),
        (backup, "--help", "Usage: stepwell backup [OPTIONS] COPY"),
        (aws, "task-queue --help", "Usage: stepwell aws task-queue [OPTIONS] NAME"),
    ],
)
def test_help_has_the_headings_of_the_others(
    command: object, line: str, usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(line.split())  # type: ignore[operator]
    lines = capsys.readouterr().out.splitlines()
    assert (ended.value.code, lines[0]) == (0, usage)
    assert "Options:" in lines and not any(line.startswith(("usage:", "options:", "positional")) for line in lines)
