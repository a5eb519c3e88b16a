"""Installations to test on: a cell with tables of its own costs less than emptying those of another test."""

import itertools
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config

from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.tables import create_bucket, create_queues, create_tables

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cell:
    """What is there: tables, the timers' queue, a bucket."""

    names: Names
    bucket: str
    region: str
    environment: Mapping[str, str]
    """Of any process that works on it; the test's own process has it for as long as the test runs."""

    @property
    def variables(self) -> dict[str, str]:
        """The whole environment of a process of the cell's own, such as a container."""
        return {**self.environment, "STEPWELL_CELL": self.names.cell, "STEPWELL_BUCKET": self.bucket}


class Provisioning:
    """Plain clients, made once per session."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.region = environment.get("AWS_DEFAULT_REGION", "us-east-1")
        session = boto3.Session(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN"),
            self.region,
        )
        config = Config(retries={"mode": "standard", "total_max_attempts": 4})
        endpoint = environment["AWS_ENDPOINT_URL"]
        self.dynamodb: Any = session.client("dynamodb", endpoint_url=endpoint, config=config)
        self.sqs: Any = session.client("sqs", endpoint_url=endpoint, config=config)
        self.s3: Any = session.client("s3", endpoint_url=endpoint, config=config)

    def cell(self) -> Cell:
        """A new one, whose name nobody had: an endpoint given from outside keeps what was made."""
        names = Names(f"t{os.getpid() % 10_000}-{secrets.token_hex(2)}-{next(_numbers) % 10_000}")
        create_tables(self.dynamodb, names)
        create_queues(self.sqs, names)
        bucket = names.bucket("123456789012", self.region)
        create_bucket(self.s3, bucket, self.region)
        return Cell(names, bucket, self.region, self.environment)

    def close(self) -> None:
        for client in (self.dynamodb, self.sqs, self.s3):
            client.close()
