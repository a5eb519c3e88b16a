"""What tests put between streams, queues and functions behaves as Lambda's event source mappings are documented to."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.event_pump import Faults, QueuePump, StreamPump, StreamRecord, insert_record


def records(count: int) -> list[StreamRecord]:
    return [insert_record({"pk": {"S": "p"}, "sk": {"S": f"C#{n}"}}, n, 0.0) for n in range(count)]


def numbers(event: Sequence[StreamRecord]) -> list[int]:
    return [int(record["dynamodb"]["SequenceNumber"]) for record in event]


class Function:
    """Fails with the numbers of ``poison``, and as a whole with a batch that has one of ``crash``."""

    def __init__(self, poison: Sequence[int] = (), crash: Sequence[int] = ()) -> None:
        self.batches: list[list[int]] = []
        self.poison = poison
        self.crash = crash

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        batch = numbers(event["Records"])
        self.batches.append(batch)
        if any(number in self.crash for number in batch):
            raise OSError("crashed")
        return {"batchItemFailures": [{"itemIdentifier": f"{n:021d}"} for n in batch if n in self.poison]}


def test_batches_in_order_where_nothing_is_disturbed() -> None:
    function = Function()
    pump = StreamPump(function, random.Random(1), batch=4)
    pump.feed(records(10))
    assert pump.run() == 10
    assert function.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and pump.failed == []


def test_a_failure_is_tried_again_from_there_and_in_the_end_set_aside_with_what_is_behind_it() -> None:
    function = Function(poison=[2])
    pump = StreamPump(function, random.Random(1), batch=4, tries=3)
    pump.feed(records(6))
    pump.run()
    assert function.batches == [[0, 1, 2, 3], [2, 3], [2, 3], [4, 5]]
    assert numbers(pump.failed) == [2, 3]


def test_a_function_that_crashes_has_its_batch_halved() -> None:
    function = Function(crash=[1])
    pump = StreamPump(function, random.Random(1), batch=4, tries=2)
    pump.feed(records(4))
    pump.run()
    assert function.batches == [[0, 1, 2, 3], [0, 1], [0], [1], [1], [2, 3]]
    assert numbers(pump.failed) == [1]


def test_faults_repeat_swap_and_hold_back_but_lose_nothing_unless_told() -> None:
    function = Function()
    pump = StreamPump(function, random.Random(1), Faults(twice=0.3, late=0.3, swapped=0.5))
    pump.feed(records(100))
    pump.run()
    seen = [number for batch in function.batches for number in batch]
    assert sorted(set(seen)) == list(range(100)) and len(seen) > 110 and seen != sorted(seen)
    lossy = StreamPump(Function(), random.Random(1), Faults(lost=1.0))
    lossy.feed(records(5))
    assert lossy.run() == 0


def test_messages_that_fail_come_back_and_are_set_aside_in_the_end(
    shared_cell: Cell, provisioning: Provisioning
) -> None:
    sqs = provisioning.sqs
    name = f"{shared_cell.names.prefix}-pump"
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    for body in ("good", "bad"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    handled: list[str] = []

    def function(event: dict[str, Any], context: Any) -> dict[str, Any]:
        handled.extend(record["body"] for record in event["Records"])
        bad = [record["messageId"] for record in event["Records"] if record["body"] == "bad"]
        return {"batchItemFailures": [{"itemIdentifier": each} for each in bad]}

    pump = QueuePump(sqs, url, function, random.Random(1), tries=3)
    assert pump.run() == 1
    assert handled.count("bad") == 3 and handled.count("good") == 1
    assert [message["Body"] for message in pump.failed] == ["bad"]


def test_a_function_that_crashes_fails_all_of_its_messages(shared_cell: Cell, provisioning: Provisioning) -> None:
    sqs = provisioning.sqs
    name = f"{shared_cell.names.prefix}-pump-crash"
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="a")

    def function(event: dict[str, Any], context: Any) -> dict[str, Any]:
        raise OSError("crashed")

    pump = QueuePump(sqs, url, function, random.Random(1), tries=2)
    assert pump.run() == 0 and len(pump.failed) == 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_messages_twice_in_a_batch_are_asked_for(shared_cell: Cell, provisioning: Provisioning, share: float) -> None:
    sqs = provisioning.sqs
    url = sqs.create_queue(QueueName=f"{shared_cell.names.prefix}-pump-{share:.0f}")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="a")
    seen: list[str] = []

    def function(event: dict[str, Any], context: Any) -> dict[str, Any]:
        seen.extend(record["messageId"] for record in event["Records"])
        return {"batchItemFailures": []}

    assert QueuePump(sqs, url, function, random.Random(1), twice=share).run() == 1
    assert len(seen) == (2 if share else 1) and len(set(seen)) == 1
