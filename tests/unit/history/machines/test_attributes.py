"""Memo and search attributes by command: merged, shown, within their limits (VI-08, VI-09)."""

from datetime import timedelta

import pytest
from stepwell.api.commands import Command, CompleteWorkflowExecution, ModifyWorkflowProperties, StartTimer
from stepwell.api.commands import UpsertWorkflowSearchAttributes as Upsert
from stepwell.api.common import UserMetadata
from stepwell.api.enums import CompletionOutcome, WorkflowTaskFailedCause
from stepwell.api.payloads import Payload

from stepwell_server.history.tasks import RecordVisibility
from tests.support.history_run import Run

NULL = Payload(metadata={"encoding": "binary/null"})


def value(text: str) -> Payload:
    return Payload(metadata={"encoding": "json/plain"}, data=text.encode())


def memo(**values: Payload) -> ModifyWorkflowProperties:
    return ModifyWorkflowProperties(upserted_memo=values)


def search(**values: Payload) -> Upsert:
    return Upsert(search_attributes=values)


def visible(run: Run) -> list[RecordVisibility]:
    assert run.last is not None
    return [task for task in run.last.tasks if isinstance(task, RecordVisibility)]


def test_values_are_merged_and_shown_once_a_commit() -> None:
    run = Run(memo={"kept": value("1"), "gone": value("2")})
    run.accept(memo(gone=NULL, new=value("3")), search(city=value('"Rome"')), memo(new=value("4")))
    assert run.tail(3) == [
        "WorkflowPropertiesModified",
        "UpsertWorkflowSearchAttributes",
        "WorkflowPropertiesModified",
    ]
    assert run.s.memo == {"kept": value("1"), "new": value("4")}
    assert run.s.search_attributes == {"city": value('"Rome"')}
    (shown,) = visible(run)
    assert shown.memo == run.s.memo and shown.search_attributes == run.s.search_attributes
    assert shown.close_time is None


def test_with_the_close_the_last_ones_are_shown() -> None:
    run = Run()
    run.accept(memo(a=value("1")), CompleteWorkflowExecution())
    (shown,) = visible(run)
    assert shown.memo == {"a": value("1")} and shown.close_time is not None


def test_an_empty_list_takes_a_search_attribute_away() -> None:
    run = Run(search_attributes={"tags": value('["a"]')})
    run.accept(search(tags=value("[]")))
    assert run.s.search_attributes == {}


@pytest.mark.parametrize(
    ("command", "cause", "says"),
    [
        (memo(), WorkflowTaskFailedCause.BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES, "there is no memo"),
        (memo(a=value("x" * 2_100_000)), WorkflowTaskFailedCause.BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES, "2097152"),
        (search(), WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES, "there is no search attribute"),
        (
            search(a=value("x" * 2_049)),
            WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES,
            "'a' has 2049 bytes; at most 2048",
        ),
        (
            Upsert(search_attributes={"x" * 1_001: value("1")}),
            WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES,
            "has 1001 bytes",
        ),
        (
            Upsert(search_attributes={f"n{n}": value("1") for n in range(101)}),
            WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES,
            "would have 101 search attributes; at most 100",
        ),
        (
            Upsert(search_attributes={f"n{n}": value("x" * 2_000) for n in range(21)}),
            WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES,
            "at most 40960",
        ),
    ],
)
def test_limits(command: Command, cause: WorkflowTaskFailedCause, says: str) -> None:
    run = Run()
    reply = run.complete(command)
    assert reply.outcome is CompletionOutcome.FAILED and says in reply.message, reply.message
    assert run.s.workflow_task is not None and run.s.workflow_task.last_cause is cause


def test_limits_are_of_what_is_there_afterwards() -> None:
    run = Run(search_attributes={f"n{n}": value("1") for n in range(100)})
    run.accept(Upsert(search_attributes={"n1": NULL, "m": value("1")}))
    assert len(run.s.search_attributes) == 100


@pytest.mark.parametrize(("field", "limit"), [("summary", 400), ("details", 20_000)])
def test_texts_for_people(field: str, limit: int) -> None:
    """Four times the text's own limit, since it may have been encrypted (PM-27)."""

    def started(size: int) -> StartTimer:
        metadata = UserMetadata(**{field: value("x" * size)})
        return StartTimer(timer_id="1", start_to_fire_timeout=timedelta(hours=1), user_metadata=metadata)

    run = Run()
    reply = run.complete(started(4 * limit + 1))
    assert reply.outcome is CompletionOutcome.FAILED and f"a text of at most {limit}" in reply.message
    run.accept(started(4 * limit))
    assert run.events[-1].user_metadata == started(4 * limit).user_metadata
