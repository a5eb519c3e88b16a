"""The tables over the union of events: nothing that the engine records is forgotten, or meant in two ways."""

import typing
from collections import Counter

from stepwell.api import events as ev
from stepwell.api.updates import UpdateRequest
from stepwell.replay import activation
from stepwell.replay.jobs import JOBS


def test_every_event_has_exactly_one_place_in_replay() -> None:
    places = Counter(
        [
            *(JOBS.keys() - {UpdateRequest}),  # comes with its workflow task
            *activation.COMMAND_EVENTS,
            *activation._IGNORED,
            *activation._TASK_ENDS,
            ev.WorkflowTaskStarted,
        ]
    )
    assert places == Counter(typing.get_args(ev.EventAttributes))
