"""A reset driven through the pure core, as the shell does it."""

from collections.abc import Collection, Sequence

from stepwell.api.enums import ResetReapplyExcludeType
from stepwell.api.events import EventAttributes

from stepwell_server.history.machines.reapplying import may_count_again
from stepwell_server.history.machines.reset import Prefix
from stepwell_server.history.requests import Reset
from stepwell_server.history.transition import Transition
from tests.support.history_run import Run


def reset(
    run: Run,
    last_event_id: int,
    run_id: str = "run-2",
    *,
    excluded: Collection[ResetReapplyExcludeType] = (),
    late: Sequence[EventAttributes] = (),
    request_id: str = "",
) -> Transition:
    """To the workflow task that ``last_event_id`` has started, with the current run as the base."""
    base = run.s.run_id
    prefix = Prefix(run.s.namespace, run_id, excluded)
    for event in run.events:
        if event.event_id <= last_event_id:
            prefix.add(event)
        elif may_count_again(event.attributes, of_base=True):
            prefix.reapply(event.attributes, run.now)
        if event.event_id == last_event_id:
            prefix.fail_task("", "me", run.now)
    run.prefix = [event for _, part in prefix.take_parts(last=True) for event in part]
    request = Reset(
        run_id=run_id,
        base_run_id=base,
        state=prefix.state,
        late=tuple(late),
        excluded=frozenset(excluded),
        request_id=request_id,
    )
    return run.step(request)
