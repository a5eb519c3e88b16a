"""Offline replay: does today's code still do what stored histories say it did (VE-20)? For tests and CI."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..api.enums import WorkflowTaskFailedCause
from ..api.events import WorkflowExecutionStarted
from ..converter.codec import decode_record
from ..converter.data_converter import DataConverter
from ..converter.failure_converter import readable
from ..exceptions import StepwellError
from ..workflow.definition import WorkflowDefinition
from ..workflow.dynamic import DYNAMIC, workflow_for
from ..workflow.interceptors import InterceptsWorkflows, workflow_interceptors
from .errors import NondeterminismError, WorkflowTaskError
from .history import WorkflowHistory
from .run import WorkflowRun


class ReplayFailedError(StepwellError):
    """A history cannot be replayed for another reason than non-determinism, such as a bug in the code."""


@dataclass(frozen=True)
class WorkflowReplayResult:
    """Of one history; ``replay_failure`` is None when the code did what the history says."""

    history: WorkflowHistory
    replay_failure: Exception | None

    def report(self) -> str:
        """One line for people."""
        run = f"workflow {self.history.workflow_id!r}, run {self.history.run_id!r}, {len(self.history.events)} events"
        return f"ok: {run}" if self.replay_failure is None else f"failed: {run}: {self.replay_failure}"


@dataclass(frozen=True)
class WorkflowReplayResults:
    """Of several histories; failures by run id."""

    replay_failures: Mapping[str, Exception] = field(default_factory=dict)


class Replayer:
    """Replays histories against workflow code. Nothing is sent anywhere, and no activity runs."""

    def __init__(
        self,
        *,
        workflows: Sequence[Any],
        namespace: str = "ReplayNamespace",
        data_converter: DataConverter = DataConverter.default,
        workflow_failure_exception_types: Sequence[type[BaseException]] = (),
        interceptors: Sequence[InterceptsWorkflows] = (),
    ) -> None:
        """``interceptors`` are those of the worker, as far as they are around workflow code."""
        if not workflows:
            raise ValueError("Replayer: workflows must name at least one workflow")
        self._definitions = {
            DYNAMIC if definition.dynamic else definition.name: definition
            for definition in map(WorkflowDefinition.must_of, workflows)
        }
        self._namespace = namespace
        self._converter = data_converter
        self._failure_types = tuple(workflow_failure_exception_types)
        self._interceptors, self._extern_functions = workflow_interceptors(interceptors)

    async def replay_workflow(
        self, history: WorkflowHistory, *, raise_on_replay_failure: bool = True
    ) -> WorkflowReplayResult:
        """Replay one history, of an open or a closed run.

        Raises :class:`NondeterminismError` with event number, what was recorded and what the code asked for, or
        :class:`ReplayFailedError`; with ``raise_on_replay_failure=False`` these are in the result.
        """
        events = [await decode_record(self._converter.payload_codec, event) for event in history.events]
        failure = self._replay(WorkflowHistory(history.workflow_id, events))
        if failure is not None and raise_on_replay_failure:
            raise failure
        return WorkflowReplayResult(history, failure)

    async def replay_workflows(
        self,
        histories: Iterable[WorkflowHistory] | AsyncIterable[WorkflowHistory],
        *,
        raise_on_replay_failure: bool = True,
    ) -> WorkflowReplayResults:
        """Replay several; raises at the first failure, or collects all."""
        failures: dict[str, Exception] = {}
        async for result in self.workflow_replay_iterator(histories):
            if result.replay_failure is not None:
                if raise_on_replay_failure:
                    raise result.replay_failure
                failures[result.history.run_id] = result.replay_failure
        return WorkflowReplayResults(failures)

    async def workflow_replay_iterator(
        self, histories: Iterable[WorkflowHistory] | AsyncIterable[WorkflowHistory]
    ) -> AsyncIterator[WorkflowReplayResult]:
        """Results one by one."""
        async for history in _each(histories):
            yield await self.replay_workflow(history, raise_on_replay_failure=False)

    def _replay(self, history: WorkflowHistory) -> Exception | None:
        started = history.events[0].attributes if history.events else None
        if not isinstance(started, WorkflowExecutionStarted):
            return ReplayFailedError(f"workflow {history.workflow_id!r}: the history does not begin with its start")
        definition = workflow_for(self._definitions, started.workflow_type)
        if definition is None:
            known = ", ".join(sorted(self._definitions))
            return ReplayFailedError(
                f"workflow {history.workflow_id!r} is of type {started.workflow_type!r}, which is not among: {known}"
            )
        run = WorkflowRun(
            definition,
            namespace=self._namespace,
            workflow_id=history.workflow_id,
            run_id=history.run_id or started.original_execution_run_id,
            task_queue=started.task_queue,
            converter=self._converter,
            failure_types=self._failure_types,
            interceptors=self._interceptors,
            extern_functions=self._extern_functions,
        )
        try:
            run.run_task(history.events)
            if run.mismatch is not None:
                raise run.mismatch
        except WorkflowTaskError as error:
            name = f"workflow {history.workflow_id!r} ({started.workflow_type}), run {run.run_id!r}"
            where = f"{name}: {readable(error.failure, self._converter.payload_converter).message}"
            if error.failed_cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR:
                failure: Exception = NondeterminismError(where)
            else:
                failure = ReplayFailedError(where)
            failure.__cause__ = error
            return failure
        finally:
            run.evict()
        return None


async def _each(
    histories: Iterable[WorkflowHistory] | AsyncIterable[WorkflowHistory],
) -> AsyncIterator[WorkflowHistory]:
    if isinstance(histories, AsyncIterable):
        async for history in histories:
            yield history
    else:
        for history in histories:
            yield history
