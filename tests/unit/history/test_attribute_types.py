"""Search attributes that workflow code may say, and those that the system alone does (VI-06)."""

import pytest
from stepwell.api.commands import (
    Command,
    ContinueAsNewWorkflowExecution,
    StartChildWorkflowExecution,
    UpsertWorkflowSearchAttributes,
)
from stepwell.api.payloads import Payload

from stepwell_server.adapters.system import SystemClock, SystemIds
from stepwell_server.history.attribute_types import AttributeTypes
from stepwell_server.namespaces.registry import Namespaces

VERSIONS = {"StepwellChangeVersion": Payload(metadata={"type": "KeywordList"}, data=b'["v-1"]')}
CAUSE = {"StepwellFailureCause": Payload(metadata={"type": "KeywordList"}, data=b'["mine"]')}


def child(attributes: dict[str, Payload]) -> Command:
    return StartChildWorkflowExecution(workflow_id="c", workflow_type="t", task_queue="q", search_attributes=attributes)


def again(attributes: dict[str, Payload]) -> Command:
    return ContinueAsNewWorkflowExecution(workflow_type="t", task_queue="q", search_attributes=attributes)


def upsert(attributes: dict[str, Payload]) -> Command:
    return UpsertWorkflowSearchAttributes(search_attributes=attributes)


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        (upsert(VERSIONS), ""),
        (upsert(CAUSE), "StepwellFailureCause"),
        (child(VERSIONS), "StepwellChangeVersion"),
        (again(CAUSE), "StepwellFailureCause"),
    ],
)
async def test_of_the_systems_own_code_writes_its_versions_alone(command: Command, refused: str) -> None:
    types = AttributeTypes(Namespaces(None, SystemClock(), SystemIds()), None)  # type: ignore[arg-type]
    misfit = await types.misfit("n", [command])
    if refused:
        assert misfit.startswith(f"search attribute {refused!r} is one that the system itself sets")
    else:
        assert misfit == ""
