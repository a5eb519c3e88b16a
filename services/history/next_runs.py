"""What the core needs of the outside to let a run go on as the next one: an id, and how the run began."""

from collections.abc import Callable

from stepwell.api.events import HistoryEvent, WorkflowExecutionStarted

from .commit import ExecutionKey, before
from .executions import unavailable
from .machines import chain
from .ports import ExecutionLog, StoreUnavailable
from .requests import NO_NEXT_RUN, NextRun
from .state import ExecutionState


async def next_run(
    log: ExecutionLog,
    key: ExecutionKey,
    state: ExecutionState | None,
    run_id: str,
    new_id: Callable[[], str],
    *,
    continues: bool = False,
) -> NextRun:
    """For the close of run ``run_id`` in ``state``. ``continues``: it surely is followed. Raises Unavailable."""
    if state is None or state.run_id != run_id or not (continues or chain.repeats(state)):
        return NO_NEXT_RUN
    first = await _first(log, key, state)
    if first is None or not isinstance(first.attributes, WorkflowExecutionStarted):
        return NO_NEXT_RUN
    return NextRun(run_id=new_id(), started=first.attributes, user_metadata=first.user_metadata)


async def _first(log: ExecutionLog, key: ExecutionKey, state: ExecutionState) -> HistoryEvent | None:
    """The first event of the run: its input is nowhere else."""
    try:
        page = await log.read_events(key, state.run_id, before(state), 1)
    except StoreUnavailable as error:
        raise unavailable(error) from error
    return page.events[0] if page.events else None
