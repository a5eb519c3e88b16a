"""Makes the tables, queues and bucket of one cell, once the emulator is up. The product's own code does it: the same
that ``stepwell aws bootstrap`` runs, from the folder that compose.yaml mounts.

Emulators run this in a Python of their own, which has botocore; some by exec, so that there is no ``__file__``.
"""

import os
import sys
from typing import Any

sys.path.insert(0, os.environ.get("STEPWELL_SOURCES", "/opt/stepwell"))

from botocore.session import get_session

from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.tables import create_bucket, create_queues, create_tables

REGION = os.environ.get("AWS_DEFAULT_REGION", "us-east-1")


def client(service: str) -> Any:
    """At the emulator that runs this."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    return get_session().create_client(service, region_name=REGION, endpoint_url=endpoint)


names = Names(os.environ.get("STEPWELL_CELL", "main"))
account = client("sts").get_caller_identity()["Account"]
create_tables(client("dynamodb"), names)
create_queues(client("sqs"), names)
create_bucket(client("s3"), names.bucket(account, REGION), REGION)
print(f"Stepwell: tables, queues and bucket of the cell {names.cell} are there")  # noqa: T201
