"""Events are found by the run and the commit that hold them."""

import msgspec
import pytest
from stepwell.api.errors import Internal
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history.head_cache import HeadCache
from stepwell_server.history.scheduled_events import ScheduledEvents
from tests.support.sample_commits import chain


async def test_an_event_in_the_commit_that_closed_its_run() -> None:
    """The same commit opens the next run, which has events of the same numbers sooner or later."""
    backend = embedded_backend(":memory:")
    first, second = chain(1, runs=2)
    shared = second[0]
    assert shared.closed is not None
    for commit in (*first, *second):
        await backend.log.append(commit)
    cache = HeadCache(10, 10_000_000)
    cache.loaded(second[-1])
    events = ScheduledEvents(backend.log, cache, 1_000_000)
    for _ in range(2):  # read, then remembered
        for run_id, expected in ((shared.closed.run_id, shared.closed.events), (shared.run_id, shared.events)):
            for event in expected:
                found: HistoryEvent = await events.initiated(shared.key, run_id, shared.seq, event.event_id)
                assert msgspec.structs.asdict(found) == msgspec.structs.asdict(event)
    with pytest.raises(Internal, match=r"commit .* does not hold the event 9999"):
        await events.initiated(shared.key, shared.run_id, shared.seq, 9999)
    await backend.close()
