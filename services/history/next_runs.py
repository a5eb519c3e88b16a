"""What the core needs of the outside to let a run go on as the next one: an id, and how the run began."""

from stepwell.api.events import WorkflowExecutionStarted

from .commit import ExecutionKey
from .executions import unavailable
from .machines import chain
from .ports import ExecutionLog, StoreUnavailable
from .requests import NO_NEXT_RUN, NextRun
from .state import ExecutionState


async def next_run(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState | None, run_id: str, next_run_id: str
) -> NextRun:
    """For the close of run ``run_id`` in ``state``. Without an id there is nothing to follow. Raises Unavailable."""
    if not next_run_id or state is None or state.run_id != run_id:
        return NO_NEXT_RUN
    started = await _started(log, key, state) if chain.repeats(state) else None
    return NextRun(run_id=next_run_id, started=started)


async def _started(log: ExecutionLog, key: ExecutionKey, state: ExecutionState) -> WorkflowExecutionStarted | None:
    """The first event of the run: its input is nowhere else."""
    try:
        page = await log.read_events(key, state.run_id, state.first_seq - 1, 1)
    except StoreUnavailable as error:
        raise unavailable(error) from error
    first = page.events[0].attributes if page.events else None
    return first if isinstance(first, WorkflowExecutionStarted) else None
