"""What a workflow may know about itself (PM-28). Everything here is the same in replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..api.enums import SuggestContinueAsNewReason
from ..api.payloads import Payload
from ..common import Priority, RetryPolicy


@dataclass(slots=True)
class _Progress:
    """What changes with each workflow task."""

    history_length: int = 0
    history_size: int = 0
    continue_as_new_suggested: bool = False
    reasons: tuple[SuggestContinueAsNewReason, ...] = ()

    def suggest(self, reasons: tuple[SuggestContinueAsNewReason, ...], *, suggested: bool = False) -> None:
        self.continue_as_new_suggested = suggested or bool(reasons)
        self.reasons = reasons

    def copy(self) -> "_Progress":
        return _Progress(self.history_length, self.history_size, self.continue_as_new_suggested, self.reasons)

    def back_to(self, earlier: "_Progress") -> None:
        self.history_length, self.history_size = earlier.history_length, earlier.history_size
        self.suggest(earlier.reasons, suggested=earlier.continue_as_new_suggested)


@dataclass(frozen=True)
class ParentInfo:
    """The workflow that started this one as its child."""

    namespace: str
    run_id: str
    workflow_id: str


@dataclass(frozen=True)
class RootInfo:
    """The top of the tree of parents."""

    run_id: str
    workflow_id: str


@dataclass(frozen=True)
class Info:
    """Of one run."""

    attempt: int
    """1 for the first run of a chain of retries."""
    continued_run_id: str | None
    """The run that went before in the chain; None in its first run."""
    cron_schedule: str | None
    execution_timeout: timedelta | None
    """Of the whole chain of runs."""
    first_execution_run_id: str
    """First run of the chain; the same in all of its runs."""
    headers: Mapping[str, Payload]
    namespace: str
    original_execution_run_id: str
    """The run's own, or of the run that it was first reset from. Seeds the run's randomness up to a reset."""
    raw_memo: Mapping[str, Payload]
    priority: Priority
    """Of its tasks, and of the activities and children that say nothing else."""
    retry_policy: RetryPolicy | None
    run_id: str
    run_timeout: timedelta | None
    start_time: datetime
    """When the run started, UTC."""
    task_queue: str
    task_timeout: timedelta
    workflow_id: str
    workflow_type: str
    parent: ParentInfo | None = None
    """None for a workflow that is nobody's child (CH-08)."""
    root: RootInfo | None = None
    """None when it is this workflow."""
    _progress: _Progress = field(default_factory=_Progress, repr=False, compare=False)

    def get_current_history_length(self) -> int:
        """Events in the history when the current workflow task began."""
        return self._progress.history_length

    def get_current_history_size(self) -> int:
        """Bytes of the history, as recorded with the last workflow task that was handed out by the engine."""
        return self._progress.history_size

    def is_continue_as_new_suggested(self) -> bool:
        """True when the history has become long (LC-22): from 4,096 events, 4 MiB or 1,800 updates on."""
        return self._progress.continue_as_new_suggested

    def get_continue_as_new_suggested_reasons(self) -> Sequence[SuggestContinueAsNewReason]:
        """Why it is suggested; empty while it is not."""
        return self._progress.reasons
