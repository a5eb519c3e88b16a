"""WC-02: one signal that cannot be decoded must not wedge the workflow."""

import logging

import pytest
from stepwell import workflow
from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import (
    WorkflowExecutionFailed,
    WorkflowExecutionSignaled,
    WorkflowExecutionUpdateAccepted,
    WorkflowTaskFailed,
)
from stepwell.api.payloads import Payload

from tests.support.cases import Case, attributes, events_of, json_payload, until

OBJECT = json_payload('{"amount": 1}')
UNKNOWN = Payload(metadata={"encoding": "binary/unheard-of"}, data=b"\x00\x01")


@workflow.defn
class Sum:
    """Adds what it is sent, until it is told to end."""

    def __init__(self) -> None:
        self.total = 0
        self.ended = False

    @workflow.signal
    def add(self, amount: int) -> None:
        self.total += amount

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.update
    def raise_by(self, amount: int) -> int:
        self.total += amount
        return self.total

    @workflow.query
    def current(self) -> int:
        return self.total

    @workflow.run
    async def run(self, first: int) -> int:
        self.total += first
        await workflow.wait_condition(lambda: self.ended)
        return self.total


def warnings_of(caplog: pytest.LogCaptureFixture, signal: str) -> list[str]:
    """What was logged about skipped signals of that name, at warning or above."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and f"signal {signal!r}" in record.getMessage()
    ]


async def test_bad_signals_are_skipped_and_told_about(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Tried: ``add`` takes an integer and gets, in order, a JSON object, bytes of an unknown encoding, a signal without
    a handler goes by, then a valid integer. The state is queried, the worker restarted, the state queried again.

    Right: the valid integer counts, before and after the restart; all four stay in the history, no task failed; there
    is one warning for each bad one, and it names workflow, signal and reason; the run ends well.
    """
    caplog.set_level(logging.WARNING)
    handle = await case.start(Sum.run, 100, id="sum-1")
    async with case.worker([Sum]):
        await until(lambda: _started(handle))
        await case.signal_by_request("sum-1", "add", OBJECT)
        await case.signal_by_request("sum-1", "add", UNKNOWN)
        await case.signal_by_request("sum-1", "ad", json_payload("5"))
        await handle.signal(Sum.add, 7)
        assert await handle.query(Sum.current) == 107
    async with case.worker([Sum]):
        assert await handle.query(Sum.current) == 107
        await handle.signal(Sum.add, 1)
        assert await handle.query(Sum.current) == 108
        await handle.signal(Sum.end)
        assert await handle.result() == 108
    events = await events_of(handle)
    signals = attributes(events, WorkflowExecutionSignaled)
    assert [signal.signal_name for signal in signals] == ["add", "add", "ad", "add", "add", "end"]
    assert signals[0].input == (OBJECT,) and signals[1].input == (UNKNOWN,), "what was sent stays to be looked at"
    assert attributes(events, WorkflowTaskFailed) == []
    bad = warnings_of(caplog, "add")
    assert len(bad) == 2, bad
    assert all("sum-1" in line for line in bad)
    assert "int" in bad[0] and "binary/unheard-of" in bad[1]
    (unhandled,) = warnings_of(caplog, "ad")
    assert "sum-1" in unhandled and "no handler" in unhandled and "add" in unhandled


async def test_bad_updates_are_refused_to_the_caller(case: Case) -> None:
    """Tried: an update that takes an integer gets a JSON object, bytes of an unknown encoding, no argument and two;
    then a valid integer.

    Right: each caller is told what does not fit; the workflow lives on, and nothing of the bad ones is in its history.
    """
    bad = {"int": (OBJECT,), "binary/unheard-of": (UNKNOWN,), "takes 1 argument": ()}
    async with case.worker([Sum]):
        handle = await case.start(Sum.run, 0, id="sum-3")
        for reason, payloads in bad.items():
            request = r.UpdateWorkflowRequest(
                execution=WorkflowExecution(workflow_id="sum-3"),
                update_id=reason.replace("/", " "),
                update_name="raise_by",
                input=payloads,
            )
            response = await case.client.transport.call(op.UPDATE_WORKFLOW, request)
            assert response.outcome is not None and response.outcome.failure is not None
            assert reason in response.outcome.failure.message
        assert await handle.execute_update(Sum.raise_by, 7) == 7
        await handle.signal(Sum.end)
        assert await handle.result() == 7
    events = await events_of(handle)
    assert attributes(events, WorkflowTaskFailed) == []
    assert len(attributes(events, WorkflowExecutionUpdateAccepted)) == 1


async def _started(handle: object) -> bool:
    return (await handle.describe()).history_length >= 4  # type: ignore[attr-defined]


async def test_signal_with_too_many_or_no_arguments(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Tried: ``add`` without an argument, and with two.

    Right: as with any signal that does not fit: skipped with one warning each, the run lives on.
    """
    caplog.set_level(logging.WARNING)
    async with case.worker([Sum]):
        handle = await case.start(Sum.run, 0, id="sum-2")
        await case.signal_by_request("sum-2", "add")
        await case.signal_by_request("sum-2", "add", json_payload("1"), json_payload("2"))
        await handle.signal(Sum.add, 3)
        await handle.signal(Sum.end)
        result = await handle.result()
    assert result == 3
    assert attributes(await events_of(handle), WorkflowTaskFailed) == []
    assert len(warnings_of(caplog, "add")) == 2


@pytest.mark.parametrize("argument", [OBJECT, UNKNOWN], ids=["object", "unknown encoding"])
async def test_bad_start_argument_shows(case: Case, argument: Payload, caplog: pytest.LogCaptureFixture) -> None:
    """Tried: a run of the type is started with an argument that its code cannot decode, beside a healthy one.

    Right: it is not silent: describe shows a failing task that names the argument (or the run is failed, saying so),
    and the log names the workflow. The healthy run on the same worker is not held up.
    """
    caplog.set_level(logging.WARNING)
    async with case.worker([Sum]):
        await case.start_by_request("Sum", "bad", input=(argument,))
        healthy = await case.start(Sum.run, 1, id="good")
        handle = case.client.get_workflow_handle("bad")

        async def trouble() -> str:
            described = await handle.describe()
            task = described.pending_workflow_task
            if task is not None and task.last_failure is not None:
                assert task.attempt > 1
                return task.last_failure.message
            failed = attributes(await events_of(handle), WorkflowExecutionFailed)
            return failed[0].failure.message if failed else ""

        message = await until(trouble)
        assert "first" in message or "argument" in message
        await healthy.signal(Sum.end)
        assert await healthy.result() == 1
    assert any("bad" in record.getMessage() for record in caplog.records)
    await handle.terminate(reason="tried")
