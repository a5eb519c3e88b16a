"""``stepwell workflow scan``: all runs of a large namespace, one a line, as they come."""

import sys

import click

from ..api import operations as o
from ..api import requests as r
from ..api.limits import MAX_LIST_PAGE
from .connection import Engine, Target, run
from .filtering import filter_options
from .grammar import Command
from .options import Whole, target_options
from .output import print_json
from .text import safe


@click.command(cls=Command, spare=("--query",))
@filter_options
@click.option("--limit", type=Whole(min=1), help="Stop after so many; all without it.")
@target_options
def scan(target: Target, query: str, limit: int | None) -> None:
    """Print all workflows in no order: status, run id and workflow id, a line each.

    It costs less than a list, keeps nothing in memory, and takes no ORDER BY. A run that closes meanwhile may come
    twice. With --output json: one run a line.
    """

    async def command(engine: Engine) -> None:
        token, left = b"", limit
        while left is None or left > 0:
            size = MAX_LIST_PAGE if left is None else min(left, MAX_LIST_PAGE)
            request = r.ScanWorkflowsRequest(
                namespace=target.namespace, query=query, page_size=size, next_page_token=token
            )
            page = await engine.call(o.SCAN_WORKFLOWS, request)
            for info in page.executions:
                if target.as_json:
                    print_json(info)
                else:
                    click.echo(f"{info.status:<16} {info.execution.run_id} {safe(info.execution.workflow_id)}")
            sys.stdout.flush()
            left = None if left is None else left - len(page.executions)
            token = page.next_page_token
            if not token:
                return

    run(target, command, read_only=True)
