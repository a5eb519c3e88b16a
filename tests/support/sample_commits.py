"""Commits as the engine writes them, made by hand: input for storage tests and benchmarks, which need no engine.

One run of three sequential steps is five commits: start, first completion (leases step 1), two fused steps, a fused
close. Ids, names and payloads vary with the number of the run, as they do in the field.
"""

import hashlib
import uuid
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
from stepwell.api import events as ev
from stepwell.api.common import ProcessIdentity, RetryPolicy, SdkMetadata
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.payloads import Payload

from stepwell_server.history.activity_item import ActivityItem, ItemState
from stepwell_server.history.commit import ClosedRun, Commit
from stepwell_server.history.state import (
    CompletionMark,
    ExecutionState,
    Lease,
    OwedSignal,
    PendingActivity,
    WorkflowTaskState,
)
from stepwell_server.history.tasks import DispatchWorkflowTask, RecordVisibility, Task

EPOCH = datetime(2026, 3, 1, 9, tzinfo=UTC)
TASK_TIMEOUT = timedelta(seconds=10)
ACTIVITIES = ("charge_card", "reserve_stock", "create_shipment")


def payload(number: int, step: int) -> Payload:
    """A small JSON document, as an order service would pass on."""
    amount, sku = (number * 37 + step * 11) % 50_000 / 100, number * 31 % 997
    data = (
        f'{{"order_id":"order-{number:06d}","customer":"c-{(number * 7919) % 100_000:05d}",'
        f'"amount":"{amount:.2f}","items":[{{"sku":"sku-{sku}","quantity":{step + 1}}}]}}'
    )
    return Payload(metadata={"encoding": "json/plain"}, data=data.encode())


def random_id(*parts: object) -> str:
    """A UUID that looks random and is the same in every run of the tests."""
    return str(uuid.UUID(bytes=hashlib.blake2b(repr(parts).encode(), digest_size=16).digest(), version=4))


def nonce(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def attributes_open_a_commit(attributes: ev.EventAttributes) -> bool:
    """Events of one commit share its time."""
    return isinstance(attributes, ev.WorkflowExecutionStarted | ev.ActivityTaskStarted | ev.WorkflowTaskStarted)


class SampleRun:
    """Makes the commits of one run; ``first_seq`` above 1 makes it a later run of the id."""

    def __init__(
        self,
        number: int,
        *,
        namespace: str = "default",
        workflow_id: str | None = None,
        run: int = 0,
        first_seq: int = 1,
        start_time: datetime | None = None,
        steps: int = 3,
        workflow_type: str = "fulfil_order",
        worker: str = "",
    ) -> None:
        self.number, self.namespace, self.steps, self.first_seq = number, namespace, steps, first_seq
        self.workflow_id = workflow_id or f"order-{number:06d}"
        self.workflow_type = workflow_type
        self.run_id = random_id("run", namespace, self.workflow_id, number, run)
        self.start_time = start_time or EPOCH + timedelta(milliseconds=7 * number)
        self.worker = worker or str(number % 3)
        pid = 1_000 + zlib.crc32(self.worker.encode()) % 60_000
        self.identity = f"{pid}@host-{self.worker}"
        self.worker_key = random_id("worker", self.worker).replace("-", "")
        self.holder = ProcessIdentity(
            machine=f"{random_id('machine', self.worker)}/pid:[4026531836]", pid=pid, started=str(pid * 97)
        )
        self.request_id = random_id("start", number).replace("-", "")
        self._event_id = 0
        self._now = self.start_time

    def commits(self) -> Iterator[Commit]:
        """The run from its start to its completion."""
        yield self._start()
        for step in range(self.steps + 1):
            yield self._step(step)

    def _event(self, attributes: ev.EventAttributes) -> ev.HistoryEvent:
        self._event_id += 1
        if attributes_open_a_commit(attributes):
            self._now += timedelta(microseconds=137 + (self.number * 31 + self._event_id * 17) % 400)
        return ev.HistoryEvent(event_id=self._event_id, event_time=self._now, attributes=attributes)

    def _start(self) -> Commit:
        events = (
            self._event(
                ev.WorkflowExecutionStarted(
                    workflow_type=self.workflow_type,
                    task_queue="orders",
                    input=(payload(self.number, 0),),
                    workflow_task_timeout=TASK_TIMEOUT,
                    original_execution_run_id=self.run_id,
                    first_execution_run_id=self.run_id,
                    identity=self.identity,
                    request_id=self.request_id,
                    workflow_id=self.workflow_id,
                )
            ),
            self._event(ev.WorkflowTaskScheduled(task_queue="orders", start_to_close_timeout=TASK_TIMEOUT)),
        )
        state = ExecutionState(
            namespace=self.namespace,
            workflow_id=self.workflow_id,
            run_id=self.run_id,
            first_run_id=self.run_id,
            workflow_type=self.workflow_type,
            task_queue="orders",
            start_time=self.start_time,
            last_event_time=self._now,
            workflow_task_timeout=TASK_TIMEOUT,
            start_request_id=self.request_id,
            next_event_id=self._event_id + 1,
            history_size=610,
            workflow_task=WorkflowTaskState(
                scheduled_event_id=2, scheduled_time=self._now, next_dispatch=self._now + timedelta(seconds=30)
            ),
            seq=self.first_seq,
            first_seq=self.first_seq,
            numbered_seq=self.first_seq,
            armed=self._now + timedelta(seconds=30),
            request_ids=(f"{nonce('request', self.number)[:16]}={self.run_id}",),
        )
        self._state = state
        return self._commit("Start", events, (DispatchWorkflowTask(task_queue="orders"), self._visibility()), owes=True)

    def _step(self, step: int) -> Commit:
        seq = self.first_seq + 1 + step
        events: list[ev.HistoryEvent] = []
        if step:
            events += self._activity_end(step)
        scheduled = self._event_id
        if step:
            task = self._event(ev.WorkflowTaskScheduled(task_queue="orders", start_to_close_timeout=TASK_TIMEOUT))
            events.append(task)
            scheduled = task.event_id
        size = self._state.history_size
        started = self._event(ev.WorkflowTaskStarted(scheduled_event_id=scheduled, history_size_bytes=size))
        completed = self._event(
            ev.WorkflowTaskCompleted(
                scheduled_event_id=scheduled,
                started_event_id=started.event_id,
                identity=self.identity,
                sdk_metadata=None if step else SdkMetadata(flags=(1,), sdk_name="stepwell-python"),
            )
        )
        events += [started, completed]
        mark = CompletionMark(
            nonce=f"{self.worker_key}-{self.number % 4_000 + seq}", seq=seq, started_event_id=started.event_id
        )
        changes = {"seq": seq, "numbered_seq": seq, "completion": mark, "workflow_task": None}
        changes |= {"last_worker_key": self.worker_key, "previous_started_event_id": started.event_id}
        if step == self.steps:
            return self._close(events, completed.event_id, changes)
        scheduled_event = self._schedule(step, completed.event_id)
        events.append(scheduled_event)
        pending = self._pending(step, scheduled_event, seq)
        self._state = msgspec.structs.replace(
            self._state,
            **changes,
            next_event_id=self._event_id + 1,
            last_event_time=self._now,
            history_size=self._state.history_size + 1_150,
            activities={pending.scheduled_event_id: pending},
            activity_ids={pending.activity_id: pending.scheduled_event_id},
        )
        return self._commit("CompleteWorkflowTask", tuple(events), ())

    def _activity_end(self, step: int) -> list[ev.HistoryEvent]:
        scheduled_event_id = next(iter(self._state.activities))
        started = self._event(ev.ActivityTaskStarted(scheduled_event_id=scheduled_event_id, identity=self.identity))
        completed = self._event(
            ev.ActivityTaskCompleted(
                result=(payload(self.number, step),),
                scheduled_event_id=scheduled_event_id,
                started_event_id=started.event_id,
                identity=self.identity,
            )
        )
        return [started, completed]

    def _schedule(self, step: int, completed_event_id: int) -> ev.HistoryEvent:
        return self._event(
            ev.ActivityTaskScheduled(
                activity_id=str(step + 1),
                activity_type=ACTIVITIES[step % len(ACTIVITIES)],
                task_queue="orders",
                input=(payload(self.number, step),),
                start_to_close_timeout=timedelta(seconds=30),
                workflow_task_completed_event_id=completed_event_id,
                retry_policy=RetryPolicy(),
            )
        )

    def _pending(self, step: int, scheduled: ev.HistoryEvent, seq: int) -> PendingActivity:
        return PendingActivity(
            scheduled_event_id=scheduled.event_id,
            scheduled_seq=seq,
            activity_id=str(step + 1),
            activity_type=ACTIVITIES[step % len(ACTIVITIES)],
            task_queue="orders",
            scheduled_time=scheduled.event_time,
            start_to_close_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(),
            lease=Lease(identity=self.identity, started_time=self._now, holder=self.holder, worker_key=self.worker_key),
        )

    def _close(self, events: list[ev.HistoryEvent], completed_event_id: int, changes: dict[str, object]) -> Commit:
        events.append(
            self._event(
                ev.WorkflowExecutionCompleted(
                    result=(payload(self.number, self.steps),), workflow_task_completed_event_id=completed_event_id
                )
            )
        )
        self._state = msgspec.structs.replace(
            self._state,
            **changes,
            status=WorkflowExecutionStatus.COMPLETED,
            close_time=self._now,
            next_event_id=self._event_id + 1,
            last_event_time=self._now,
            activities={},
            activity_ids={},
        )
        return self._commit("CompleteWorkflowTask", tuple(events), (self._visibility(),), owes=False)

    def _visibility(self) -> RecordVisibility:
        closed = self._event_id > 2
        return RecordVisibility(
            run_id=self.run_id,
            workflow_type=self.workflow_type,
            task_queue="orders",
            status=WorkflowExecutionStatus.COMPLETED if closed else WorkflowExecutionStatus.RUNNING,
            start_time=self.start_time,
            close_time=self._now if closed else None,
            history_length=self._event_id,
        )

    def _commit(
        self,
        kind: str,
        events: tuple[ev.HistoryEvent, ...],
        tasks: tuple[Task, ...],
        *,
        owes: bool | None = None,
    ) -> Commit:
        state = self._state
        closed = state.close_time is not None
        return Commit(
            namespace=self.namespace,
            workflow_id=self.workflow_id,
            seq=state.seq,
            run_id=self.run_id,
            kind=kind,
            base=state.seq - 1,
            time=self._now,
            nonce=nonce(self.run_id, state.seq),
            events=events,
            state=state,
            tasks=tasks,
            deadline=None if closed else state.armed,
            owes=owes,
            expires_at=self._now + timedelta(days=7) if closed else None,
        )


def sample_item(run: SampleRun, scheduled_event_id: int = 5, version: int = 1) -> ActivityItem:
    """An activity item of the run: started at version 1, completed at any later one."""
    done = version > 1
    return ActivityItem(
        namespace=run.namespace,
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        scheduled_event_id=scheduled_event_id,
        version=version,
        state=ItemState.COMPLETED if done else ItemState.STARTED,
        activity_id="1",
        activity_type=ACTIVITIES[0],
        scheduled_time=run.start_time,
        start_to_close_timeout=timedelta(seconds=30),
        retry_policy=RetryPolicy(),
        identity=run.identity,
        holder=run.holder,
        worker_key=run.worker_key,
        started_time=run.start_time,
        finished_time=run.start_time + timedelta(milliseconds=20) if done else None,
        result=(payload(run.number, version),) if done else (),
    )


def two_runs(end: Commit, start: Commit) -> Commit:
    """One commit of the end of a run and the start of the next, whose ``first_seq`` is the seq of that end."""
    return msgspec.structs.replace(
        start,
        closed=ClosedRun(state=end.state, events=end.events),
        tasks=(*(task for task in end.tasks if isinstance(task, RecordVisibility)), *start.tasks),
        nonce=nonce("two", start.nonce),
    )


def chain(number: int, runs: int = 2, *, steps: int = 3, start_time: datetime | None = None) -> list[list[Commit]]:
    """The commits of runs that follow each other, by the run that each opens or goes on with."""
    commits: list[list[Commit]] = []
    end: Commit | None = None
    for run in range(runs):
        first_seq = 1 if end is None else end.seq
        begins = start_time if end is None else end.time
        sample = SampleRun(number, run=run, first_seq=first_seq, steps=steps, start_time=begins)
        mine = list(sample.commits())
        if end is not None:
            mine[0] = two_runs(end, mine[0])
        end = mine[-1]
        commits.append(mine if run == runs - 1 else mine[:-1])
    return commits


def owing(commit: Commit, *run_ids: str) -> Commit:
    """The commit with a state that owes a signal of each of these runs."""
    owed = tuple(
        OwedSignal(
            run_id=run_id,
            initiated_event_id=5,
            workflow_id="another",
            initiated_seq=commit.seq,
            next_dispatch=EPOCH + timedelta(days=1),
        )
        for run_id in run_ids
    )
    return msgspec.structs.replace(commit, state=msgspec.structs.replace(commit.state, owed=owed), owes=bool(owed))
