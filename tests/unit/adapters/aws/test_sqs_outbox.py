"""Sends that share requests: all arrive, each hears of its own, and a refusal of one is none of the others'."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from stepwell_server.adapters.aws import sqs_outbox
from stepwell_server.adapters.aws.sqs_outbox import Message, Outbox
from stepwell_server.matching.ports import QueueRefused, QueuesUnavailable


class Sqs:
    """Answers as SQS does; ``fail`` says how often a body fails, and with what."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.fail: dict[str, list[dict[str, Any]]] = {}
        self.raises: list[Exception] = []
        self.running = 0
        self.most = 0

    async def __call__(self, entries: list[dict[str, Any]]) -> Mapping[str, Any]:
        self.requests.append([entry["MessageBody"] for entry in entries])
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.005)
        self.running -= 1
        if self.raises:
            raise self.raises.pop()
        answer: dict[str, list[dict[str, Any]]] = {"Successful": [], "Failed": []}
        for entry in entries:
            failures = self.fail.get(entry["MessageBody"])
            if failures:
                answer["Failed"].append({"Id": entry["Id"], **failures.pop(0)})
            else:
                answer["Successful"].append({"Id": entry["Id"]})
        return answer


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Sqs:
    monkeypatch.setattr(sqs_outbox, "_PAUSE", 0.001)
    return Sqs()


def message(body: str) -> Message:
    return Message(body, 0, "")


async def test_sends_at_the_same_time_share_requests_of_ten_and_four_run_at_once(sqs: Sqs) -> None:
    outbox = Outbox(sqs)
    bodies = [str(number) for number in range(95)]
    await asyncio.gather(*(outbox.send(message(body)) for body in bodies))
    assert sorted(body for request in sqs.requests for body in request) == sorted(bodies)
    assert len(sqs.requests) == 10 and sqs.most == 4


async def test_sends_one_after_the_other_all_go(sqs: Sqs) -> None:
    outbox = Outbox(sqs)
    for number in range(5):
        await outbox.send(message(str(number)))
    assert [len(request) for request in sqs.requests] == [1] * 5


async def test_what_does_not_fit_into_one_request_goes_with_the_next(sqs: Sqs) -> None:
    outbox = Outbox(sqs)
    await asyncio.gather(*(outbox.send(message(letter * 100_000)) for letter in "abcdef"))
    assert sorted(len(request) for request in sqs.requests) == [2, 2, 2]


async def test_one_that_fails_in_a_batch_is_sent_again_alone(sqs: Sqs) -> None:
    sqs.fail = {"b": [{"Code": "InternalError", "SenderFault": False}] * 2}
    outbox = Outbox(sqs)
    await asyncio.gather(*(outbox.send(message(body)) for body in "abc"))
    assert sqs.requests == [["a", "b", "c"], ["b"], ["b"]]


async def test_failures_are_told_to_those_whom_they_concern(sqs: Sqs) -> None:
    sqs.fail = {
        "b": [{"Code": "InternalError", "SenderFault": False}] * 9,
        "c": [{"Code": "InvalidMessageContents", "SenderFault": True, "Message": "no"}],
    }
    outbox = Outbox(sqs)
    a, b, c = await asyncio.gather(*(outbox.send(message(body)) for body in "abc"), return_exceptions=True)
    assert a is None
    assert isinstance(b, QueuesUnavailable) and isinstance(c, QueueRefused)


async def test_a_request_that_fails_fails_its_batch_and_no_later_send(sqs: Sqs) -> None:
    sqs.raises = [QueuesUnavailable("throttled")]
    outbox = Outbox(sqs)
    first = await asyncio.gather(*(outbox.send(message(body)) for body in "ab"), return_exceptions=True)
    assert [type(one) for one in first] == [QueuesUnavailable] * 2
    await outbox.send(message("c"))


async def test_a_sender_that_gives_up_does_not_disturb_the_others(sqs: Sqs) -> None:
    outbox = Outbox(sqs)
    sends = [asyncio.ensure_future(outbox.send(message(body))) for body in "ab"]
    await asyncio.sleep(0)
    sends[0].cancel()
    await sends[1]
    assert sqs.requests == [["a", "b"]]
