"""Every event that we can record is one of theirs, by the same name."""

import re
from typing import get_args

from stepwell.api.events import EventAttributes
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import message_pb2 as pb

from stepwell_server.temporal_gateway.events import TABLE


def test_the_table_has_every_event() -> None:
    assert set(TABLE) == set(get_args(EventAttributes))


def test_events_keep_their_names() -> None:
    for kind, row in TABLE.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
        assert EventType.Name(row.event_type) == f"EVENT_TYPE_{name.upper()}"
        field = pb.HistoryEvent.DESCRIPTOR.fields_by_name[row.field]
        assert field.name == f"{name}_event_attributes"
