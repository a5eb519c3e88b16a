"""``stepwell aws bootstrap``: tables, bucket and queues of a cell, without CDK; for emulators and trials.

The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.aws``.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .serving import REFUSED

UNREACHABLE = 4
"""The exit code where AWS, or the emulator, cannot be reached or failed."""

_MISSING = "the AWS half of the server is not installed.\nInstall it:  python -m pip install 'stepwell-server[aws]'\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 when all is there, 2 for a mistake in the command line, 3 when AWS refuses something, 4
    when it cannot be reached."""
    options = _parser().parse_args(None if arguments is None else list(arguments))
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ModuleNotFoundError:
        sys.stderr.write(f"Error: {_MISSING}")
        return REFUSED
    try:
        _bootstrap(boto3, options)
    except ClientError as error:
        told = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        sys.stderr.write(f"Error: {_sentence(error.operation_name, told, status)}; what was made stays, run it again\n")
        return UNREACHABLE if status >= 500 else REFUSED
    except (BotoCoreError, TimeoutError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return UNREACHABLE
    return 0


def _bootstrap(boto3: Any, options: argparse.Namespace) -> None:
    from ..adapters.aws import tables
    from ..adapters.aws.token_key import make_token_key

    names = options.cell
    session = boto3.Session(region_name=options.region)
    region = session.region_name
    if region is None:
        _wrong("there is no region: give --region, or set AWS_DEFAULT_REGION")
    clients = {
        service: session.client(service, endpoint_url=options.endpoint_url)
        for service in ("dynamodb", "sqs", "s3", "sts")
    }
    try:
        bucket = options.bucket or names.bucket(clients["sts"].get_caller_identity()["Account"], region)
        tables.create_tables(clients["dynamodb"], names)
        make_token_key(clients["dynamodb"], names.ctl_table)
        tables.create_queues(clients["sqs"], names)
        tables.create_bucket(clients["s3"], bucket, region)
    finally:
        for client in clients.values():
            client.close()
    sys.stdout.write(
        f"Cell {names.cell} is there: tables {', '.join(names.tables)}; queues {names.timer_queue}, "
        f"{names.failure_queue}; bucket {bucket}. Its processes need:\n"
        f"  STEPWELL_CELL={names.cell}\n  STEPWELL_BUCKET={bucket}\n  AWS_REGION={region}\n"
    )
    if options.endpoint_url:
        sys.stdout.write(f"  AWS_ENDPOINT_URL={options.endpoint_url}\n")


def _sentence(operation: str, told: dict[str, Any], status: int) -> str:
    from ..adapters.aws.faults import fault_of

    return str(fault_of("AWS", operation, "", str(told.get("Code", "")), str(told.get("Message", "")), status, None))


def _wrong(message: str) -> NoReturn:
    sys.stderr.write(f"Error: {message}\n")
    raise SystemExit(2)


def _cell(text: str) -> Any:
    from ..adapters.aws.names import NameRefused, Names

    try:
        return Names(text)
    except NameRefused as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stepwell aws", description="The control plane on AWS.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bootstrap = commands.add_parser(
        "bootstrap",
        help="make the tables, the bucket and the queues of a cell",
        description="Make the tables, the bucket and the queues of a cell without CDK, for an emulator or a trial. "
        "What is there already stays as it is. Credentials come from the usual places.",
    )
    bootstrap.add_argument("--cell", type=_cell, default="main", help="name of the installation (default: main)")
    bootstrap.add_argument("--region", help="default: that of the environment")
    bootstrap.add_argument("--bucket", help="for payloads; default: stepwell-CELL-ACCOUNT-REGION")
    bootstrap.add_argument("--endpoint-url", metavar="URL", help="an emulator's; default: AWS_ENDPOINT_URL, else AWS")
    return parser
