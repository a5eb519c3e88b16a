"""LC-10: what follows from an attempt to tell a callback."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from stepwell.api.callbacks import Callback
from stepwell.api.enums import CallbackState as State

from stepwell_server.common.control import wake_up_id
from stepwell_server.history import callback_records as records
from stepwell_server.history.callback_records import Attempt, Delivery, Told
from stepwell_server.history.machines.parent_close import CALLBACKS_OF

T0 = datetime(2026, 12, 1, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


def delivery(*urls: str) -> Delivery:
    told = tuple([Told(callback=Callback(url=url, headers={"Authorization": "x"}), next_at=T0) for url in urls])
    return Delivery(told=told, body=b"{}", since=T0)


def test_the_close_names_the_records_wake_ups() -> None:
    assert CALLBACKS_OF.format("run-1") == wake_up_id(records.KIND, "run-1")


@pytest.mark.parametrize(
    ("attempt", "state"),
    [
        (Attempt(status=200), State.SUCCEEDED),
        (Attempt(status=204), State.SUCCEEDED),
        (Attempt(status=302), State.FAILED),
        (Attempt(status=400), State.FAILED),
        (Attempt(status=429), State.BACKING_OFF),
        (Attempt(status=503), State.BACKING_OFF),
        (Attempt(failure="nobody listens"), State.BACKING_OFF),
        (Attempt(failure="not allowed", final=True), State.FAILED),
    ],
)
def test_which_answers_are_tried_again(attempt: Attempt, state: State) -> None:
    after = records.attempted(delivery("https://a"), {0: attempt}, T0, DAY)
    assert after.told[0].state is state


def test_pauses_double_up_to_an_hour_and_it_is_given_up_after_a_week() -> None:
    now, one = T0, delivery("https://a")
    pauses = []
    while (next_at := one.told[0].next_at) is not None:
        now = next_at
        one = records.attempted(one, {0: Attempt(status=500)}, now, DAY)
        if one.told[0].next_at is not None:
            pauses.append(one.told[0].next_at - now)
    assert pauses[:4] == [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND] and pauses[-1] == timedelta(hours=1)
    assert T0 + 6 * DAY < now <= T0 + 7 * DAY
    info = records.infos(one.told)[0]
    assert (info.state, info.last_attempt_failure) == (State.FAILED, "it was answered with HTTP 500")
    assert one.kept_until == now + DAY and records.wakes_at(one) == one.kept_until


def test_what_is_over_keeps_no_body_and_no_headers() -> None:
    one = delivery("https://a", "https://b")
    one = records.attempted(one, {0: Attempt(status=200), 1: Attempt(status=500)}, T0, DAY)
    assert one.body and records.due(one, T0) == () and records.due(one, T0 + SECOND) == (1,)
    assert records.decode(records.encode(one)) == one
    one = records.attempted(one, {1: Attempt(status=200)}, T0 + SECOND, DAY)
    assert one.body == b"" and [told.callback for told in one.told] == [
        Callback(url="https://a"),
        Callback(url="https://b"),
    ]
    assert [told.attempt for told in one.told] == [1, 2]
    assert b"Authorization" not in msgspec.msgpack.encode(one)
