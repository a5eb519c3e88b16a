"""ER-08: each cause of a failed workflow task is given somewhere, or named as one that cannot be met."""

import re
from pathlib import Path

from stepwell.api.enums import WorkflowTaskFailedCause as Cause

ROOT = Path(__file__).parents[3]
NEVER = {
    Cause.BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES,
    Cause.BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES,
    Cause.BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES,
    Cause.FEATURE_DISABLED,
}


def test_each_cause_is_given_or_cannot_be_met() -> None:
    folders = (
        ROOT / "services" / "history",
        ROOT / "sdk" / "stepwell" / "worker",
        ROOT / "sdk" / "stepwell" / "replay",
    )
    source = "\n".join(path.read_text() for folder in folders for path in sorted(folder.rglob("*.py")))
    words = set(re.findall(r"\.([A-Z_]+)\b", source))
    assert {cause for cause in Cause if cause.name not in words} == NEVER


def test_the_semantics_say_which_cannot_be_met() -> None:
    (row,) = [line for line in (ROOT / "docs" / "semantics.md").read_text().splitlines() if line.startswith("| ER-08 ")]
    assert [cause.name for cause in NEVER if cause.name not in row] == []
