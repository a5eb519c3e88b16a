"""The rules of a history, as an import applies them: what engines of all releases have written obeys them."""

from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.replay.history import WorkflowHistory

from stepwell_server.frontend.validation_import import import_workflow
from stepwell_server.history.apply import rebuild
from stepwell_server.history.machines.importing import Check, run_id_of

HISTORIES = sorted((Path(__file__).parents[2] / "replay/histories").glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_histories_of_all_releases_may_be_imported(path: Path) -> None:
    history = WorkflowHistory.from_json("", path.read_bytes())
    execution = WorkflowExecution(workflow_id=history.workflow_id)
    import_workflow(r.ImportWorkflowRequest(execution=execution, events=tuple(history.events)))
    check = Check()
    check.add(history.events)
    check.end()
    assert rebuild(history.events, "default").run_id == history.run_id == run_id_of(history.events)
