"""Messages of an event as queues: each is given out once, and known until it is done with or taken back."""

import asyncio

import pytest
from stepwell.transport.event_fed import ACTIVITY, WORKFLOW, EventQueues, QueueOfEvent


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "arn:aws:sqs:eu-west-1:123456789012:stepwell-main-00ff-wft-0",
            QueueOfEvent(WORKFLOW, "stepwell-main-00ff-wft"),
        ),
        (
            "https://sqs.eu-west-1.amazonaws.com/1/stepwell-a-b-00ff-act-12",
            QueueOfEvent(ACTIVITY, "stepwell-a-b-00ff-act"),
        ),
        ("stepwell-main-timers", None),
        ("arn:aws:sqs:eu-west-1:123456789012:orders-wft", None),
        ("arn:aws:sqs:eu-west-1:123456789012:orders-wft-x", None),
        ("", None),
    ],
)
def test_what_a_queues_name_tells(name: str, found: QueueOfEvent | None) -> None:
    assert QueueOfEvent.parse(name) == found


async def test_each_message_goes_to_one_poll_and_all_polls_wait_again() -> None:
    parked: list[bool] = []
    queues = EventQueues(lambda: parked.append(True))
    polls = [asyncio.create_task(queues.receive(WORKFLOW, 1, 0.0, 0)) for _ in range(2)]
    await asyncio.sleep(0)
    assert queues.quiet(2) and not queues.quiet(3) and len(parked) == 2
    handle = queues.put(WORKFLOW, "hint")
    assert not queues.quiet(2)
    done, waiting = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    assert [received.handle for poll in done for received in poll.result()] == [handle]
    assert len(waiting) == 1 and queues.quiet(1)
    for poll in waiting:
        poll.cancel()
    await asyncio.wait(waiting)
    assert queues.quiet(0)


async def test_what_is_not_done_with_is_taken_back_and_given_to_nobody() -> None:
    queues = EventQueues(lambda: None)
    handles = [queues.put(ACTIVITY, body) for body in ("done", "begun", "waits")]
    for body in ("done", "begun"):
        (received,) = await queues.receive(ACTIVITY, 1, 0.0, 0)
        assert received.body == body
    await queues.delete(ACTIVITY, handles[:1])
    assert queues.take_back(handles) == set(handles[1:])
    assert queues.take_back(handles) == set() and queues.quiet(0)
