"""Timelines of fixed histories: every kind of bar, at the widths of terminals, and what becomes of too much."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len
from stepwell.api import events as e
from stepwell.api.common import RetryPolicy, UserMetadata, WorkflowExecution
from stepwell.api.enums import (
    PendingActivityState,
    RetryState,
    StartChildWorkflowExecutionFailedCause,
    TimeoutType,
    WorkflowExecutionStatus,
    WorkflowTaskFailedCause,
)
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.payloads import ENCODING, ENCODING_JSON, Payload
from stepwell.api.requests import DescribeWorkflowResponse, PendingActivityInfo, WorkflowExecutionInfo
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateOutcome, UpdateRequest
from stepwell.cli.timeline import _Look, _Node, picture
from stepwell.cli.timeline_bars import Bar, Kind, RunBars, Status
from stepwell.cli.timeline_text import ASCII, MAX_REMARKS, UNICODE, Frame, Row, Signs, drawn, remarks

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
FAILURE = Failure(message="declined", info=ApplicationFailureInfo(failure_type="Card"))
KID = WorkflowExecution(workflow_id="pack-9", run_id="kid-run")


class History:
    """Numbers events; ``at`` seconds from the start."""

    def __init__(self) -> None:
        self.bars = RunBars()
        self.last = 0
        self.add(
            0,
            e.WorkflowExecutionStarted(
                workflow_type="Order",
                task_queue="orders",
                workflow_task_timeout=timedelta(seconds=10),
                original_execution_run_id="run",
                first_execution_run_id="run",
                workflow_id="order-9",
            ),
        )

    def add(self, at: float, attributes: e.EventAttributes, summary: str = "") -> int:
        self.last += 1
        said = Payload(metadata={ENCODING: ENCODING_JSON}, data=f'"{summary}"'.encode()) if summary else None
        self.bars.feed(
            e.HistoryEvent(
                event_id=self.last,
                event_time=time(at),
                attributes=attributes,
                user_metadata=None if said is None else UserMetadata(summary=said),
            )
        )
        return self.last

    def scheduled(self, at: float, name: str) -> int:
        return self.add(
            at,
            e.ActivityTaskScheduled(
                activity_id="1",
                activity_type=name,
                task_queue="orders",
                workflow_task_completed_event_id=1,
                retry_policy=RetryPolicy(),
            ),
        )

    def ended(self, at: float, scheduled: int, began: float | None, attempt: int, failed: bool = False) -> None:
        started = self.add(
            at,
            e.ActivityTaskStarted(
                scheduled_event_id=scheduled, attempt=attempt, started_time=None if began is None else time(began)
            ),
        )
        if failed:
            state = RetryState.MAXIMUM_ATTEMPTS_REACHED
            self.add(
                at,
                e.ActivityTaskFailed(
                    failure=FAILURE, scheduled_event_id=scheduled, started_event_id=started, retry_state=state
                ),
            )
        else:
            self.add(at, e.ActivityTaskCompleted(scheduled_event_id=scheduled, started_event_id=started))

    def timer(self, at: float, summary: str = "") -> int:
        started = e.TimerStarted(
            timer_id="1", start_to_fire_timeout=timedelta(seconds=9), workflow_task_completed_event_id=1
        )
        return self.add(at, started, summary)

    def child(self, at: float) -> int:
        return self.add(
            at,
            e.StartChildWorkflowExecutionInitiated(
                workflow_id="pack-9", workflow_type="Pack", task_queue="orders", workflow_task_completed_event_id=1
            ),
        )

    def child_started(self, at: float, initiated: int) -> int:
        return self.add(
            at,
            e.ChildWorkflowExecutionStarted(initiated_event_id=initiated, workflow_execution=KID, workflow_type="Pack"),
        )


def time(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def order(*, closed: bool = True) -> History:
    """Ten seconds of an order: retries, a failure, a timer, a child, signals and an update."""
    made = History()
    charge = made.scheduled(0, "charge")
    made.ended(4, charge, 3, 3)
    mail = made.scheduled(4, "mail")
    fired = made.timer(4, "cooling off")
    made.add(5, e.WorkflowExecutionSignaled(signal_name="add"))
    made.add(5.5, e.WorkflowExecutionSignaled(signal_name="add"))
    made.ended(6, mail, 4, 1, failed=True)
    made.add(8, e.TimerFired(timer_id="1", started_event_id=fired))
    child = made.child(6)
    begun = made.child_started(7, child)
    if closed:
        made.add(
            9,
            e.ChildWorkflowExecutionCompleted(
                workflow_execution=KID, workflow_type="Pack", initiated_event_id=child, started_event_id=begun
            ),
        )
        made.add(10, e.WorkflowExecutionCompleted(workflow_task_completed_event_id=1))
    return made


def lines(made: History, width: int, signs: Signs = UNICODE, end: float = 10, limit: int = 100) -> list[str]:
    shown, more = made.bars.shown(limit)
    rows = [Row(made.bars.run), *(Row(bar, 1) for bar in shown)]
    if more:
        rows.append(Row(Bar(Kind.WORKFLOW, "", START), 1, more))
    return [line.plain for line in drawn(rows, Frame(START, time(end), width, signs))]


def test_an_order_at_80_columns() -> None:
    assert lines(order(), 80) == EXPECTED_80.strip("\n").splitlines()


def test_an_order_in_plain_characters_at_140_columns() -> None:
    assert lines(order(), 140, ASCII) == EXPECTED_140.strip("\n").splitlines()


@pytest.mark.parametrize("width", [60, 80, 97, 140, 300])
@pytest.mark.parametrize("signs", [UNICODE, ASCII])
def test_no_line_is_wider_than_the_terminal(width: int, signs: Signs) -> None:
    made = order()
    made.scheduled(9.9, "an activity with a name that is longer than all that is left of a line " * 3)
    made.add(9.9, e.WorkflowExecutionSignaled(signal_name="日本語" * 40))
    found = lines(made, width, signs)
    assert max(map(cell_len, found)) <= width
    if signs is ASCII:
        assert [line for line in found if "日" not in line and not line.isascii()] == []


def test_what_is_open_ends_with_an_arrow_and_attempts_come_from_describe() -> None:
    made = order(closed=False)
    waiting, running = made.scheduled(8, "waits"), made.scheduled(8, "runs")
    common = {"activity_id": "1", "activity_type": "x", "scheduled_time": time(8), "attempt": 2}
    made.bars.pending(
        described(
            PendingActivityInfo(
                **common,
                scheduled_event_id=waiting,
                state=PendingActivityState.SCHEDULED,
                last_started_time=time(8.5),
                next_attempt_schedule_time=time(12),
                last_failure=FAILURE,
            ),
            PendingActivityInfo(
                **common, scheduled_event_id=running, state=PendingActivityState.STARTED, last_started_time=time(9)
            ),
        )
    )
    by_name = {line.split()[1]: line for line in lines(made, 100)[2:]}
    assert "█" not in by_name["waits"] and "░▶" in by_name["waits"] and "2s, attempt 2" in by_name["waits"]
    assert "░█" in by_name["runs"] and "█▶" in by_name["runs"]
    assert "▶" in by_name["pack-9"]
    told = [line.plain for line in remarks([Row(bar, 1) for bar in made.bars.bars], UNICODE)]
    assert told == ["✗ activity mail: Card: declined", "▶ activity waits: Card: declined"]


def test_every_way_to_end() -> None:
    made = History()
    task = {"scheduled_event_id": 1, "started_event_id": 1}
    made.add(1, e.WorkflowTaskFailed(**task, cause=WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR, failure=FAILURE))
    made.add(1, e.WorkflowTaskFailed(**task, cause=WorkflowTaskFailedCause.RESET_WORKFLOW, new_run_id="n"))
    made.add(2, e.WorkflowTaskTimedOut(scheduled_event_id=1, timeout_type=TimeoutType.START_TO_CLOSE))
    late, stopped = made.scheduled(1, "late"), made.scheduled(1, "stopped")
    made.add(3, e.ActivityTaskTimedOut(failure=FAILURE, scheduled_event_id=late, retry_state=RetryState.TIMEOUT))
    made.add(3, e.ActivityTaskCanceled(latest_cancel_requested_event_id=1, scheduled_event_id=stopped))
    timer = made.timer(1)
    made.add(3, e.TimerCanceled(timer_id="1", started_event_id=timer, workflow_task_completed_event_id=1))
    refused = made.child(1)
    cause = StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS
    made.add(
        2,
        e.StartChildWorkflowExecutionFailed(
            workflow_id="pack-9",
            workflow_type="Pack",
            cause=cause,
            initiated_event_id=refused,
            workflow_task_completed_event_id=1,
        ),
    )
    ended = {"workflow_execution": KID, "workflow_type": "Pack", "started_event_id": 1}
    for kind in (
        e.ChildWorkflowExecutionCanceled,
        e.ChildWorkflowExecutionTimedOut,
        e.ChildWorkflowExecutionTerminated,
    ):
        made.add(4, kind(**ended, initiated_event_id=made.child(3)))
    made.add(4, e.ChildWorkflowExecutionFailed(**ended, failure=FAILURE, initiated_event_id=made.child(3)))
    update = UpdateRequest(meta=UpdateMeta(update_id="u"), input=UpdateInput(name="change"))
    accepted = made.add(3, e.WorkflowExecutionUpdateAccepted(protocol_instance_id="u", accepted_request=update))
    outcome = UpdateOutcome(failure=FAILURE)
    made.add(4, e.WorkflowExecutionUpdateCompleted(meta=update.meta, accepted_event_id=accepted, outcome=outcome))
    sent = made.add(
        4,
        e.SignalExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=1, workflow_execution=KID, signal_name="go"
        ),
    )
    made.add(5, e.ExternalWorkflowExecutionSignaled(initiated_event_id=sent, workflow_execution=KID))
    made.add(5, e.WorkflowExecutionPaused(reason="a look"))
    made.add(6, e.WorkflowExecutionUnpaused())
    made.add(6, e.WorkflowExecutionCancelRequested(cause="by mistake"))
    left = made.timer(6)
    made.add(7, e.WorkflowExecutionTerminated(reason="enough", new_execution_run_id="next"))
    assert made.bars.of(left) is not None
    found = [(f"{bar.kind} {bar.name}", bar.status, bar.note) for bar in made.bars.bars]
    assert found == [
        ("task workflow task", Status.TIMED_OUT, ""),
        ("activity late", Status.TIMED_OUT, "Card: declined"),
        ("activity stopped", Status.CANCELED, ""),
        ("timer 1", Status.CANCELED, ""),
        ("child pack-9", Status.FAILED, "WORKFLOW_ALREADY_EXISTS"),
        ("child pack-9", Status.CANCELED, ""),
        ("child pack-9", Status.TIMED_OUT, ""),
        ("child pack-9", Status.TERMINATED, ""),
        ("child pack-9", Status.FAILED, "Card: declined"),
        ("update change", Status.FAILED, "Card: declined"),
        ("send go to pack-9", Status.DONE, ""),
        ("paused a look", Status.DONE, ""),
        ("cancel by mistake", Status.DONE, ""),
        ("timer 1", Status.OPEN, "no end when the run closed"),
    ]
    assert (made.bars.run.status, made.bars.run.note, made.bars.next_run_id) == (Status.TERMINATED, "enough", "next")


def test_of_too_many_bars_those_that_matter_are_shown_and_the_others_counted() -> None:
    made = History()
    opened = made.scheduled(0, "open")
    for number in range(1_000):
        made.ended(2, made.scheduled(1, f"a{number}"), 1, 1, failed=number == 3)
    shown, more = made.bars.shown(5)
    assert [bar.name for bar in shown] == ["open", "a3", "a997", "a998", "a999"] and more == 996
    assert made.bars.of(opened) is shown[0]
    assert "996 more" in lines(made, 80, limit=5)[-1] and "--limit" in lines(made, 80, limit=5)[-1]
    rows = [Row(Bar(Kind.ACTIVITY, "a", START, START, Status.FAILED, note="no"), 1)] * (MAX_REMARKS + 3)
    assert len(remarks(rows, UNICODE)) == MAX_REMARKS + 1


def test_nothing_recorded_can_steer_the_terminal() -> None:
    made = History()
    made.add(1, e.WorkflowExecutionSignaled(signal_name="\x1b[2Jadd\nand more"))
    assert not any("\x1b" in line or "\n" in line for line in lines(made, 80))


def test_a_picture_of_a_run_that_goes_on_and_of_one_without_length() -> None:
    node = _Node(described())
    node.bars = order(closed=False).bars
    told = [line.plain for line in picture(node, _Look(100, 100, UNICODE), time(9))]
    assert told[0] == "order-9  Order  RUNNING  since 2026-01-05 12:00:00.000Z, 9s so far"
    node.bars = History().bars
    node.bars.feed(
        e.HistoryEvent(
            event_id=2,
            event_time=START,
            attributes=e.WorkflowExecutionCompleted(workflow_task_completed_event_id=1, new_execution_run_id="next"),
        )
    )
    told = [line.plain for line in picture(node, _Look(100, 100, UNICODE), time(9))]
    assert told[:2] == ["order-9  Order  COMPLETED  since 2026-01-05 12:00:00.000Z, 0s", "goes on as run next"]


def described(*pending: PendingActivityInfo) -> DescribeWorkflowResponse:
    info = WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id="order-9", run_id="run"),
        first_run_id="run",
        workflow_type="Order",
        task_queue="orders",
        status=WorkflowExecutionStatus.RUNNING,
        start_time=START,
    )
    return DescribeWorkflowResponse(info=info, workflow_task_timeout=timedelta(seconds=10), pending_activities=pending)


EXPECTED_80 = """
                     |0           |3s          |6s          |9s
Order                ████████████████████████████████████████████  10s
  activity charge    ░░░░░░░░░░░░░█████                            4s, attempt 3
  activity mail                       █████████✗                   2s, failed
  timer cooling off                   ───────────────────          4s
  signal add x2                            ◆ ◆
  child pack-9                                 ░░░░██████████      3s
"""

EXPECTED_140 = """
                     |0             |1.5s           |3s            |4.5s           |6s             |7.5s          |9s
Order                ========================================================================================================  10s
  activity charge    ...............................===========                                                                4s, attempt 3
  activity mail                                               =====================x                                           2s, failed
  timer cooling off                                           -------------------------------------------                      4s
  signal add x2                                                          *    *
  child pack-9                                                                     ..........======================            3s
"""  # noqa: E501
