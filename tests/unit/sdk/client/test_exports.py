"""Exports and imports by a client, on an engine with a file."""

from pathlib import Path

import pytest
from stepwell.client import Client, ExportState, RPCError, WorkflowHistory


async def test_an_export_and_its_handle(tmp_path: Path) -> None:
    async with await Client.connect(f"sqlite:///{tmp_path}/orders.db") as client:
        handle = await client.start_export("monthly", continuous=True, id="tail")
        described = await handle.describe()
        assert (described.state, described.continuous, described.exported) == (ExportState.RUNNING, True, 0)
        assert described.location == str(tmp_path / "orders.db.exports/default/monthly") and "tail" in repr(described)
        await handle.stop(reason="enough")
        over = await client.get_export_handle("tail").wait()
        assert over.state is ExportState.STOPPED and over.close_reason.endswith("enough")
        assert [each.id async for each in client.list_exports(page_size=1)] == ["tail"]
        with pytest.raises(RPCError, match="destination"):
            await client.start_export("../up")
        with pytest.raises(ValueError, match="unset variable"):
            await client.start_export("monthly", id="")


async def test_a_history_is_a_run_again() -> None:
    file = Path(__file__).parents[3] / "replay/histories/0.1.0/sequence-cached.json"
    whole = WorkflowHistory.from_json("", file.read_bytes())
    history = WorkflowHistory(whole.workflow_id, whole.events[:-1])  # open: a closed one is kept for a week only
    async with await Client.connect("sqlite://:memory:") as client:
        handle = await client.import_workflow(history)
        assert (handle.id, handle.run_id) == (history.workflow_id, history.run_id)
        assert list((await handle.fetch_history()).events) == list(history.events)
        with pytest.raises(RPCError, match="already"):
            await client.import_workflow(history)
