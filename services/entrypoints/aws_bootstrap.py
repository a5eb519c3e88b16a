"""``stepwell aws bootstrap``: tables, bucket and queues of a cell, without CDK; for emulators and trials.
``stepwell aws fill-visibility``: copies what lists show from one table to a second one.
``stepwell aws task-queue``: for how long a worker that is a function has the messages of its task queue.

The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.aws``.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from stepwell.api.enums import TaskQueueKind

from ..adapters.aws.names import MAX_VISIBILITY, MIN_VISIBILITY
from ..adapters.system import SystemClock
from ..history.ports import StoreRefused, StoreUnavailable
from ..matching.ports import QueueRefused, QueuesUnavailable
from ..matching.queue_name import QueueName
from .command_lines import Parser
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
        options.run(boto3, options)
    except ClientError as error:
        told = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        sys.stderr.write(f"Error: {_sentence(error.operation_name, told, status)}; what was made stays, run it again\n")
        return UNREACHABLE if status >= 500 else REFUSED
    except (BotoCoreError, TimeoutError, StoreUnavailable, QueuesUnavailable) as error:
        sys.stderr.write(f"Error: {error}\n")
        return UNREACHABLE
    except (StoreRefused, QueueRefused) as error:
        sys.stderr.write(f"Error: {error}\n")
        return REFUSED
    return 0


def _bootstrap(boto3: Any, options: argparse.Namespace) -> None:
    from ..adapters.aws import tables
    from ..adapters.aws.token_key import make_token_key

    names, choice = options.cell, _choice(options.visibility, options.second_visibility)
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
        tables.create_tables(clients["dynamodb"], names, visibility=choice)
        make_token_key(clients["dynamodb"], names.ctl_table)
        tables.create_queues(clients["sqs"], names)
        tables.create_bucket(clients["s3"], bucket, region)
    finally:
        for client in clients.values():
            client.close()
    sys.stdout.write(
        f"Cell {names.cell} is there: tables {', '.join(choice.of_the_cell(names))}; queues {names.timer_queue}, "
        f"{names.failure_queue}; bucket {bucket}. Its processes need:\n"
        f"  STEPWELL_CELL={names.cell}\n  STEPWELL_BUCKET={bucket}\n  AWS_REGION={region}\n"
    )
    for variable, value in choice.variables().items():
        sys.stdout.write(f"  {variable}={value}\n")
    if options.endpoint_url:
        sys.stdout.write(f"  AWS_ENDPOINT_URL={options.endpoint_url}\n")


def _choice(first: str, second: str) -> Any:
    from ..adapters.aws.names import NameRefused
    from ..adapters.aws.visibility_choice import VisibilityChoice

    try:
        return VisibilityChoice(first, second)
    except NameRefused as refused:
        _wrong(str(refused))


def _fill(boto3: Any, options: argparse.Namespace) -> None:
    from .aws_filling import fill_table

    choice = _choice(options.visibility, options.second_visibility)
    first, second = choice.tables(options.cell)
    if options.back:
        first, second = second, first
    on_terminal = sys.stderr.isatty()

    def tell(copied: int) -> None:
        if on_terminal:
            sys.stderr.write(f"\r{copied} records")
            sys.stderr.flush()

    copied = asyncio.run(
        fill_table(
            options.cell,
            first,
            second,
            tell,
            anew=options.anew,
            endpoint_url=options.endpoint_url,
            region=options.region,
        )
    )
    if on_terminal:
        sys.stderr.write("\r")
    sys.stdout.write(f"{second} has what {first} has: {copied} records looked at.\n")


def _task_queue(boto3: Any, options: argparse.Namespace) -> None:
    names = asyncio.run(_set_visibility(options))
    sys.stdout.write(
        f"Messages of task queue {options.name!r} are a function's for {options.visibility} s: {', '.join(names)}. "
        "Its timeout may be as long, and no longer.\n"
    )


async def _set_visibility(options: argparse.Namespace) -> list[str]:
    from ..adapters.aws.client import AwsClients
    from ..adapters.aws.queue_settings import QueueSettings
    from ..adapters.aws.sqs_queues import SqsQueues

    clients = AwsClients(endpoint_url=options.endpoint_url, region=options.region)
    try:
        settings = QueueSettings(clients.service("dynamodb"), options.cell, SystemClock())
        queues = SqsQueues(
            clients.service("sqs"), options.cell, partitions=settings.partitions, kms_key=options.kms_key
        )
        kinds = [QueueName(options.namespace, options.name, kind) for kind in TaskQueueKind]
        await settings.set_visibility(kinds[0], options.visibility)
        return [name for kind in kinds for name in await queues.apply_visibility(kind)]
    finally:
        await clients.close()


def _visibility(text: str) -> int:
    if text.isdigit() and MIN_VISIBILITY <= int(text) <= MAX_VISIBILITY:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} are no seconds from {MIN_VISIBILITY} to {MAX_VISIBILITY}")


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
    parser = Parser(prog="stepwell aws", description="The control plane on AWS.")
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
    queue = commands.add_parser(
        "task-queue",
        help="for how long a function has the messages of its task queue",
        description="Say for how long messages of a task queue are the function's that was called with them: the "
        "longest timeout that the function may have, and how long it takes until what it did not do comes again. For "
        "both kinds of tasks; queues that are not there are made.",
    )
    queue.add_argument("name", metavar="NAME", help="of the task queue")
    queue.add_argument("--namespace", default="default", help="default: default")
    queue.add_argument("--visibility", type=_visibility, required=True, metavar="SECONDS", help="60 to 43200")
    queue.add_argument("--kms-key", default="", help="the account's own key, where the cell has one")
    filling = commands.add_parser(
        "fill-visibility",
        help="copy what lists show from the first visibility table to the second",
        description="Copy what lists show from the first visibility table of a cell to the second, once all processes "
        "of the cell write to both (STEPWELL_SECOND_VISIBILITY). What the second has newer stays. Goes on where an "
        "interrupted copy was.",
    )
    filling.add_argument("--anew", action="store_true", help="from the beginning, not from where a copy was broken off")
    filling.add_argument("--back", action="store_true", help="from the second to the first")
    for each in (bootstrap, filling):
        each.add_argument(
            "--visibility", default="vis", metavar="NAME", help="the first visibility table (default: vis)"
        )
        each.add_argument(
            "--second-visibility",
            default="",
            required=each is filling,
            metavar="NAME",
            help="the second one, such as vis2, while an installation moves to it",
        )
    filling.set_defaults(run=_fill)
    bootstrap.set_defaults(run=_bootstrap)
    queue.set_defaults(run=_task_queue)
    for each in (queue, filling):
        each.add_argument("--cell", type=_cell, default="main", help="name of the installation (default: main)")
        each.add_argument("--region", help="default: that of the environment")
    for each in (bootstrap, queue, filling):
        each.add_argument("--endpoint-url", metavar="URL", help="an emulator's; default: AWS_ENDPOINT_URL, else AWS")
    return parser
