"""What a call of DynamoDB costs the process that makes it, through botocore and through the client of our own.

    python benchmarks/aws_client.py [--calls 2000] [--rounds 5]

Both send the five hot calls of the engine, with items of a real run, to a stub in a process of its own that answers at
once. Shown is CPU time of this process per call, best of the rounds: one call after the other, and 32 at a time.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from stepwell.api.limits import MAX_STATE_BYTES

from stepwell_server.adapters.aws import commit_items, keys
from stepwell_server.adapters.aws.attributes import to_attributes, value
from stepwell_server.adapters.aws.client import LIMITS, AwsClients, DynamoClient, ServiceClient
from tests.support.sample_commits import SampleRun

TABLE = "stepwell-main-exec"
TOGETHER = 32
_COMMIT = list(SampleRun(1).commits())[2]
_ITEM = commit_items.encode(_COMMIT, "W", MAX_STATE_BYTES)[0]
_KEY = to_attributes({"pk": keys.log_key(_COMMIT.key), "sk": keys.commit_key(_COMMIT.seq)})

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "commit (PutItem, conditional)": (
        "put_item",
        {
            "TableName": TABLE,
            "Item": _ITEM,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    "head (Query)": (
        "query",
        {
            "TableName": TABLE,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND begins_with(sk, :commits)",
            "ExpressionAttributeValues": to_attributes({":pk": keys.log_key(_COMMIT.key), ":commits": keys.COMMITS}),
            "ScanIndexForward": False,
            "Limit": 1,
        },
    ),
    "commit by seq (GetItem)": ("get_item", {"TableName": TABLE, "Key": _KEY, "ConsistentRead": True}),
    "timer row (PutItem)": (
        "put_item",
        {
            "TableName": "stepwell-main-timer",
            "Item": to_attributes(
                {
                    "pk": "1#003#01772355600",
                    "sk": "1772355600123#0123456789abcdef",
                    "n": "default",
                    "w": "order-1",
                    "f": 1772355600123456,
                    "a": 1772355600001,
                    "s": 3,
                    "x": 1772960400,
                }
            ),
        },
    ),
    "expiry (UpdateItem)": (
        "update_item",
        {
            "TableName": TABLE,
            "Key": _KEY,
            "UpdateExpression": "SET x = :x",
            "ConditionExpression": "attribute_exists(pk)",
            "ExpressionAttributeValues": {":x": value(1772960400)},
        },
    ),
}


def _answers() -> dict[str, bytes]:
    """By target."""
    item = {
        name: {kind: b64encode(of).decode() if kind == "B" else of for kind, of in typed.items()}
        for name, typed in _ITEM.items()
    }
    return {
        "PutItem": b"{}",
        "UpdateItem": b"{}",
        "GetItem": json.dumps({"Item": item}).encode(),
        "Query": json.dumps({"Items": [item], "Count": 1, "ScannedCount": 1}).encode(),
    }


class _Stub(asyncio.Protocol):
    def __init__(self, answers: dict[str, bytes]) -> None:
        self._answers = answers
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end].decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            if len(self._read) < end + 4 + length:
                return
            self._read = self._read[end + 4 + length :]
            asked = head.partition("x-amz-target: dynamodb_20120810.")[2].partition("\r\n")[0]
            body = next(body for name, body in self._answers.items() if name.lower() == asked)
            kind = "application/x-amz-json-1.0"
            self._transport.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            )


async def _serve() -> None:
    answers = _answers()
    server = await asyncio.get_running_loop().create_server(lambda: _Stub(answers), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def _cost(client: ServiceClient, operation: str, parameters: dict[str, Any], calls: int, together: int) -> float:
    """Microseconds of CPU per call."""

    async def some() -> None:
        for _ in range(calls // together):
            await client.call(operation, **parameters)

    await client.call(operation, **parameters)
    began = time.process_time()
    await asyncio.gather(*(some() for _ in range(together)))
    return (time.process_time() - began) * 1e6 / (calls // together * together)


async def _measure(calls: int, rounds: int) -> None:
    clients = AwsClients()
    kinds = {"botocore": ServiceClient("dynamodb", clients, LIMITS["dynamodb"])}
    kinds["our own"] = DynamoClient("dynamodb", clients, LIMITS["dynamodb"])
    print(f"{'CPU per call, us':32}" + "".join(f"{f'{kind}, {at}':>16}" for kind in kinds for at in (1, TOGETHER)))
    for name, (operation, parameters) in CALLS.items():
        best: dict[tuple[str, int], float] = {}
        for _ in range(rounds):
            for kind, client in kinds.items():
                for together in (1, TOGETHER):
                    cost = await _cost(client, operation, parameters, calls, together)
                    best[kind, together] = min(cost, best.get((kind, together), cost))
        print(f"{name:32}" + "".join(f"{cost:16.0f}" for cost in best.values()))
    await clients.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stub", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.stub:
        asyncio.run(_serve())
        return
    stub = subprocess.Popen([sys.executable, __file__, "--stub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert stub.stdin is not None and stub.stdout is not None
    try:
        port = int(stub.stdout.readline())
        os.environ.update(
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
            AWS_ACCESS_KEY_ID="of-nobody",
            AWS_SECRET_ACCESS_KEY="of-no-account",
            AWS_DEFAULT_REGION="us-east-1",
        )
        asyncio.run(_measure(options.calls, options.rounds))
    finally:
        stub.stdin.close()
        stub.wait()


if __name__ == "__main__":
    main()
