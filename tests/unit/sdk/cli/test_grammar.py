"""What is said about a line that is nearly right."""

import shlex

import pytest
from stepwell.cli import main


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("start order-9", "workflow start --workflow-id order-9 --type TYPE --task-queue TASK_QUEUE"),
        ("execute --type T -t q order-9 7", "workflow execute --type T -t q --workflow-id order-9 --input 7"),
        ("start --type T -t q -w a '\"b c\"'", "workflow start --type T -t q -w a --input '\"b c\"'"),
        ("start -t q --type T q", "workflow start -t q --type T --workflow-id q"),
        ("signal a add 1 2", "workflow signal a --name add --input 1 --input 2"),
        ("signal a --name add 1", "workflow signal a --name add --input 1"),
        ("query a status", "workflow query a --name status"),
        ("cancel a 'by mistake'", "workflow cancel a --reason 'by mistake'"),
        ("update-result a u", "workflow update-result a --update-id u"),
        ("activity complete a 3", "activity complete a --activity-id 3"),
    ],
)
def test_an_argument_too_many_is_answered_with_the_line_that_was_meant(
    capsys: pytest.CaptureFixture[str], line: str, meant: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line if line.startswith("activity") else f"workflow {line}"))
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.endswith(f"You probably mean:\n  stepwell {meant}\n"), said.err
