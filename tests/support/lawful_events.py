"""Random lawful events of every kind about children, other workflows, updates and attributes: what the engine may
record, whoever comes to record it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from stepwell.api import events as e
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    ParentClosePolicy,
    SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIDConflictPolicy,
)
from stepwell.api.events import EventAttributes
from stepwell.api.failures import Failure
from stepwell.api.payloads import ENCODING, ENCODING_JSON, ENCODING_NULL, Payload
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateOutcome, UpdateRequest

NAMES = ("colour", "size", "owner")
VALUES = (
    Payload(metadata={ENCODING: ENCODING_JSON}, data=b'"red"'),
    Payload(metadata={ENCODING: ENCODING_JSON}, data=b"[]"),
    Payload(metadata={ENCODING: ENCODING_NULL}),
)
_CHILD_END: dict[str, type] = {
    "result": e.ChildWorkflowExecutionCompleted,
    "failure": e.ChildWorkflowExecutionFailed,
    "details": e.ChildWorkflowExecutionCanceled,
    "timed out": e.ChildWorkflowExecutionTimedOut,
    "terminated": e.ChildWorkflowExecutionTerminated,
}


def update_request(update_id: str) -> UpdateRequest:
    return UpdateRequest(meta=UpdateMeta(update_id=update_id), input=UpdateInput(name="set", args=VALUES[:1]))


@dataclass
class Lawful:
    """Draws the next event; ``recorded`` tells it the number that the event got."""

    random: Random
    completed_event_id: int
    initiated: dict[int, e.StartChildWorkflowExecutionInitiated] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    signals: set[int] = field(default_factory=set)
    cancels: set[int] = field(default_factory=set)
    admitted: list[str] = field(default_factory=list)
    accepted: dict[str, int] = field(default_factory=dict)
    updates: int = 0
    children: int = 0

    def command(self) -> EventAttributes:
        """An event that a command makes."""
        choices: list[Callable[[], EventAttributes]] = [
            self._child,
            self._signal,
            self._cancel,
            self._accept,
            lambda: e.UpsertWorkflowSearchAttributes(
                workflow_task_completed_event_id=self.completed_event_id, search_attributes=self._values()
            ),
            lambda: e.WorkflowPropertiesModified(
                workflow_task_completed_event_id=self.completed_event_id, upserted_memo=self._values()
            ),
        ]
        if self.accepted:
            choices.append(self._complete)
        return self.random.choice(choices)()

    def answer(self) -> EventAttributes | None:
        """An event that comes from outside; None when nothing is asked for."""
        choices: list[Callable[[], EventAttributes]] = [self._admit] if self.random.random() < 0.2 else []
        if self.initiated:
            choices += [self._child_answer] * 2
        if self.signals:
            choices.append(self._signal_answer)
        if self.cancels:
            choices.append(self._cancel_answer)
        return self.random.choice(choices)() if choices else None

    def recorded(self, attributes: EventAttributes, event_id: int) -> None:
        match attributes:
            case e.StartChildWorkflowExecutionInitiated():
                self.initiated[event_id] = attributes
            case e.ChildWorkflowExecutionStarted():
                self.started[attributes.initiated_event_id] = event_id
            case e.SignalExternalWorkflowExecutionInitiated():
                self.signals.add(event_id)
            case e.RequestCancelExternalWorkflowExecutionInitiated():
                self.cancels.add(event_id)
            case e.WorkflowExecutionUpdateAccepted():
                self.accepted[attributes.protocol_instance_id] = event_id

    def _values(self) -> dict[str, Payload]:
        return {self.random.choice(NAMES): self.random.choice(VALUES)}

    def _child(self) -> EventAttributes:
        self.children += 1
        return e.StartChildWorkflowExecutionInitiated(
            workflow_id=f"child-{self.children}",
            workflow_type="step",
            task_queue="orders",
            parent_close_policy=self.random.choice(list(ParentClosePolicy)),
            workflow_id_conflict_policy=self.random.choice(list(WorkflowIDConflictPolicy)),
            workflow_task_completed_event_id=self.completed_event_id,
        )

    def _signal(self) -> EventAttributes:
        return e.SignalExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=self.completed_event_id,
            workflow_execution=WorkflowExecution(workflow_id="other", run_id=self.random.choice(["", "run-7"])),
            signal_name="go",
            child_workflow_only=self.random.random() < 0.5,
        )

    def _cancel(self) -> EventAttributes:
        return e.RequestCancelExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=self.completed_event_id,
            workflow_execution=WorkflowExecution(workflow_id="other"),
            reason="no more",
        )

    def _admit(self) -> EventAttributes:
        self.updates += 1
        self.admitted.append(f"update-{self.updates}")
        return e.WorkflowExecutionUpdateAdmitted(request=update_request(self.admitted[-1]))

    def _accept(self) -> EventAttributes:
        if self.admitted:
            return e.WorkflowExecutionUpdateAccepted(protocol_instance_id=self.admitted.pop(0))
        self.updates += 1
        update_id = f"update-{self.updates}"
        return e.WorkflowExecutionUpdateAccepted(
            protocol_instance_id=update_id, accepted_request=update_request(update_id)
        )

    def _complete(self) -> EventAttributes:
        update_id = self.random.choice(sorted(self.accepted))
        outcome = self.random.choice([UpdateOutcome(success=VALUES[:1]), UpdateOutcome(failure=Failure(message="no"))])
        return e.WorkflowExecutionUpdateCompleted(
            meta=UpdateMeta(update_id=update_id), accepted_event_id=self.accepted.pop(update_id), outcome=outcome
        )

    def _child_answer(self) -> EventAttributes:
        initiated = self.random.choice(sorted(self.initiated))
        child = self.initiated[initiated]
        execution = WorkflowExecution(workflow_id=child.workflow_id, run_id=f"{child.workflow_id}-run")
        started = self.started.get(initiated)
        if started is None and self.random.random() < 0.8:
            return e.ChildWorkflowExecutionStarted(
                initiated_event_id=initiated, workflow_execution=execution, workflow_type=child.workflow_type
            )
        del self.initiated[initiated]
        if started is None:
            return e.StartChildWorkflowExecutionFailed(
                workflow_id=child.workflow_id,
                workflow_type=child.workflow_type,
                cause=StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS,
                initiated_event_id=initiated,
                workflow_task_completed_event_id=child.workflow_task_completed_event_id,
            )
        kind = self.random.choice(sorted(_CHILD_END))
        extra = {"result": VALUES[:1], "failure": Failure(message="broken"), "details": VALUES[:1]}
        end: EventAttributes = _CHILD_END[kind](
            workflow_execution=execution,
            workflow_type=child.workflow_type,
            initiated_event_id=initiated,
            started_event_id=started,
            **({kind: extra[kind]} if kind in extra else {}),
        )
        return end

    def _signal_answer(self) -> EventAttributes:
        initiated = self.signals.pop()
        execution = WorkflowExecution(workflow_id="other")
        if self.random.random() < 0.5:
            return e.ExternalWorkflowExecutionSignaled(initiated_event_id=initiated, workflow_execution=execution)
        return e.SignalExternalWorkflowExecutionFailed(
            cause=SignalExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND,
            workflow_task_completed_event_id=self.completed_event_id,
            workflow_execution=execution,
            initiated_event_id=initiated,
        )

    def _cancel_answer(self) -> EventAttributes:
        initiated = self.cancels.pop()
        execution = WorkflowExecution(workflow_id="other")
        if self.random.random() < 0.5:
            return e.ExternalWorkflowExecutionCancelRequested(
                initiated_event_id=initiated, workflow_execution=execution
            )
        return e.RequestCancelExternalWorkflowExecutionFailed(
            cause=CancelExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND,
            workflow_task_completed_event_id=self.completed_event_id,
            workflow_execution=execution,
            initiated_event_id=initiated,
        )
