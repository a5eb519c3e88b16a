"""WC-28: quotes and other awkward characters in filters are what they are, by one rule: the quote itself is doubled."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from stepwell.cli import cli
from stepwell.client import Client, RPCError
from stepwell.common import SearchAttributeKey

from tests.support.queries import AWKWARD

IDS = AWKWARD[:-1]
"""Control characters are in no id."""

TAG = SearchAttributeKey.for_keyword("Tag")


def quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


async def test_each_is_found_alone(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/awkward.db"
    async with await Client.connect(address) as client:
        for value in IDS:
            await client.start_workflow("Odd", id=value, task_queue="q", search_attributes=[TAG.value_set(value)])
        for value in IDS:
            for quote in ("'", '"'):
                for name in ("WorkflowId", "Tag", "`Tag`"):
                    query = f"{name} = {quoted(value, quote)}"
                    assert [found.id async for found in client.list_workflows(query)] == [value], query
                    assert (await client.count_workflows(query)).count == 1
        for name in ("WorkflowId", "Tag"):
            query = f"{name} STARTS_WITH '50%'"
            assert [found.id async for found in client.list_workflows(query)] == ["50%_off"]
            query = f"{name} STARTS_WITH '50_'"
            assert [found.id async for found in client.list_workflows(query)] == []
        for nothing in ("Tag = ''' OR ''''='''", "WorkflowId = ''' OR ''''='''"):
            assert [found.id async for found in client.list_workflows(nothing)] == []
        for broken in ("' OR ''='", "Tag = '' OR ''=''", "Tag = 'x' OR 1=1", "Tag = 'x'; --"):
            with pytest.raises(RPCError, match=r"query, line 1, column \d+"):
                await anext(client.list_workflows(broken))


def test_the_command_line_has_the_same_rule(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/awkward.db"

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["workflow", *arguments, "--address", database, "--output", "json"])
        assert result.exit_code == 0, result.output
        return result.stdout

    for value in IDS:
        run("start", "--type", "Odd", "--task-queue", "q", "--workflow-id", value)
    for value in IDS:
        query = f"WorkflowId = {quoted(value, chr(39))}"
        (found,) = json.loads(run("list", "--query", query))
        assert found["execution"]["workflow_id"] == value
        assert json.loads(run("count", "--query", query)) == {"count": 1, "groups": []}
