"""The contract of VisibilityStore's queries: in any store, a query finds what it means, in its order, by pages."""

from random import Random

import msgspec
import pytest
from stepwell.api.payloads import Payload

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.tasks import RecordVisibility
from stepwell_server.visibility.filters import Query
from stepwell_server.visibility.pages import Position
from stepwell_server.visibility.query import parse
from tests.support import queries
from tests.support.queries import TYPES, Asked, Run

OVER_THE_NETWORK = "dynamodb"
ORDERS = ("StartTime", "CloseTime", "Customer", "Amount", "Weight", "Rush", "Due")


@pytest.fixture(params=["sqlite-memory", "sqlite-file", OVER_THE_NETWORK, "dynamodb-emulated"])
def backend_name(request: pytest.FixtureRequest) -> str:
    """Where payloads are does not matter to queries."""
    return str(request.param)


async def put(backend: Backend, runs: list[Run]) -> None:
    for run in runs:
        for commit in run.commits:
            await backend.log.append(commit)


def parsed(backend: Backend, text: str, *, counts: bool = False) -> Query:
    return parse(text, TYPES, counts=counts, ordered_by=backend.visibility.ordered_by)


async def found(backend: Backend, query: Query, page: int) -> list[str]:
    """Run ids over all pages."""
    ids: list[str] = []
    after: Position | None = None
    for _ in range(10_000):
        part = await backend.visibility.search("default", query, after=after, limit=page)
        assert len(part.executions) <= page
        ids += [info.execution.run_id for info in part.executions]
        after = part.reached
        if after is None:
            return ids
    raise AssertionError("the pages do not end")


def orders_of(backend: Backend) -> tuple[str, ...]:
    return tuple(name for name in ORDERS if name in TYPES or name in backend.visibility.ordered_by)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_generated_queries_find_what_they_mean(backend: Backend, backend_name: str, seed: int) -> None:
    slow = backend_name == OVER_THE_NETWORK
    random = Random(seed)
    runs = queries.runs(random, 25 if slow else 60)
    await put(backend, runs)
    await put(backend, queries.runs(Random(seed + 100), 5, namespace="other"))
    asked = queries.queries(random, orders=orders_of(backend))
    for _ in range(8 if slow else 80):
        one: Asked = next(asked)
        query = parsed(backend, one.text)
        assert await found(backend, query, random.choice([3, 20, 1_000])) == one.expected(runs), one.text
        counted = await backend.visibility.count("default", Query(query.filter), after=None)
        assert counted.count == len(one.expected(runs)), one.text


async def test_groups_add_up(backend: Backend) -> None:
    runs = queries.runs(Random(5), 40)
    await put(backend, runs)
    for name in ("WorkflowType", "ExecutionStatus", "TaskQueue", "Customer", "ParentWorkflowId"):
        counted = await backend.visibility.count(
            "default", parsed(backend, f"GROUP BY {name}", counts=True), after=None
        )
        expected: dict[str | None, int] = {}
        for run in runs:
            value = run.values.get(name)
            expected[value] = expected.get(value, 0) + 1
        assert {group.value: group.count for group in counted.groups} == expected
        assert counted.count == len(runs)


async def test_the_attributes_that_there_are(embedded: Backend) -> None:
    """Files may be older than the registry of attributes."""
    assert await embedded.visibility.attribute_types("default") == {}
    await put(embedded, queries.runs(Random(6), 20))
    assert await embedded.visibility.attribute_types("default") == TYPES
    assert await embedded.visibility.attribute_types("other") == {}


async def test_pages_are_stable_while_runs_are_written(backend: Backend) -> None:
    """WC-29: what was there all the time is found once, whatever comes and closes in between."""
    random = Random(7)
    runs = queries.runs(random, 40)
    later = queries.runs(Random(8), 90)[40:]
    opened = [run.commits[0] for run in runs]
    for commit in opened:
        await backend.log.append(commit)
    closing = [run.commits[1] for run in runs if len(run.commits) > 1]
    for text in ("", "ORDER BY StartTime", "Customer IS NULL OR Customer IS NOT NULL ORDER BY Amount DESC"):
        query = parsed(backend, text)
        ids: list[str] = []
        after: Position | None = None
        while True:
            part = await backend.visibility.search("default", query, after=after, limit=7)
            ids += [info.execution.run_id for info in part.executions]
            after = part.reached
            if after is None:
                break
            if later:
                await backend.log.append(later.pop().commits[0])
            if closing and "Amount" not in text:
                await backend.log.append(closing.pop())
        assert len(ids) == len(set(ids))
        assert {run.values["RunId"] for run in runs} <= set(ids)


async def test_a_value_that_was_taken_away_finds_nothing(backend: Backend) -> None:
    (run, *_) = queries.runs(Random(9), 1)
    start = run.commits[0]
    (record,) = (task for task in start.tasks if isinstance(task, RecordVisibility))

    def saying(seq: int, customer: str) -> None:
        values: dict[str, Payload] = {"Customer": queries.payload(TYPES["Customer"], customer)} if customer else {}
        task = msgspec.structs.replace(record, search_attributes=values)
        state = msgspec.structs.replace(start.state, seq=seq)
        commits.append(
            msgspec.structs.replace(start, seq=seq, base=seq - 1, nonce=f"n{seq}", state=state, tasks=(task,))
        )

    commits: list[msgspec.Struct] = []
    for seq, customer in enumerate(["first", "second", "", "first"], start=1):
        saying(seq, customer)
    finds = {"first": [0, 3], "second": [1]}
    for at, commit in enumerate(commits):
        await backend.log.append(commit)  # type: ignore[arg-type]
        for customer, times in finds.items():
            for text in (f"Customer = '{customer}'", f"Customer IN ('{customer}', 'x')"):
                expected = [run.values["RunId"]] if at in times else []
                assert await found(backend, parsed(backend, text), 10) == expected
        assert await found(backend, parsed(backend, "Customer IN ('first', 'second')"), 10) == (
            [] if at == 2 else [run.values["RunId"]]
        )
        assert await found(backend, parsed(backend, "ORDER BY Customer"), 10) == [run.values["RunId"]]
