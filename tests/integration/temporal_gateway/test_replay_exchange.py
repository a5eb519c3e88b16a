"""One run, recorded through the gateway by Temporal's SDK: its export replays in their replayer, and in ours."""

import logging

import pytest
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer
from temporalio.client import Client
from temporalio.client import WorkflowHistory as TheirHistory
from temporalio.worker import Replayer as TheirReplayer
from temporalio.worker import UnsandboxedWorkflowRunner

from tests.replay.temporal_workflows import WORKFLOWS
from tests.temporal import exported_workflows


async def test_histories_of_the_gateway_replay_in_both(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "temporalio")
    histories = await exported_workflows.run_all(client)

    theirs = TheirReplayer(workflows=exported_workflows.WORKFLOWS, workflow_runner=UnsandboxedWorkflowRunner())
    ours = Replayer(workflows=WORKFLOWS)
    for name, text in histories.items():
        await theirs.replay_workflow(TheirHistory.from_json(f"exported-{name}", text))
        await ours.replay_workflow(WorkflowHistory.from_json("", text))
    assert set(histories) == {"activities", "cancelled", "chain", "children", "messages"}
