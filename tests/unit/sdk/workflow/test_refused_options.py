"""What workflow code gives that is of the wrong kind is refused where it is given, by the name of the argument."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.replay.errors import WorkflowTaskError
from stepwell.search_attributes import SearchAttributeKey

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)
KEY = SearchAttributeKey.for_keyword("Customer")


def refused(call: Callable[[], Any], says: str) -> None:
    """Asking for it fails the workflow task with that, and nothing is asked for."""

    @workflow.defn(name="asks")
    async def asks() -> None:
        made = call()
        if isinstance(made, Awaitable):
            await made

    d = Driver(asks)
    with pytest.raises(WorkflowTaskError, match=says):
        d.task()


def an_activity(**options: Any) -> Any:
    return workflow.execute_activity("sell", start_to_close_timeout=SHORT, **options)


def a_local_activity(**options: Any) -> Any:
    return workflow.execute_local_activity("sell", start_to_close_timeout=SHORT, **options)


def a_child(**options: Any) -> Any:
    return workflow.execute_child_workflow("pack", id="kid", **options)


def the_next_run(**options: Any) -> Any:
    workflow.continue_as_new(**options)


@pytest.mark.parametrize("policy", [{}, {"maximum_attempts": 3}, 3, False], ids=repr)
@pytest.mark.parametrize(
    ("call", "who"),
    [
        (an_activity, "activity 'sell'"),
        (a_local_activity, "local activity 'sell'"),
        (a_child, "child workflow 'kid'"),
        (the_next_run, "continue_as_new"),
    ],
)
def test_a_retry_policy_that_is_none(call: Callable[..., Any], who: str, policy: Any) -> None:
    says = rf"{who}: retry_policy must be a RetryPolicy, not {type(policy).__name__}; pass RetryPolicy\(…\)"
    refused(lambda: call(retry_policy=policy), says)


@pytest.mark.parametrize("call", [an_activity, a_local_activity])
def test_a_cancellation_type_that_is_none(call: Callable[..., Any]) -> None:
    says = "activity 'sell': cancellation_type must be one of ActivityCancellationType, not 'x'"
    refused(lambda: call(cancellation_type="x"), says)


@pytest.mark.parametrize(("call", "who"), [(an_activity, "activity 'sell'"), (a_child, "child workflow 'kid'")])
def test_an_empty_task_queue(call: Callable[..., Any], who: str) -> None:
    refused(lambda: call(task_queue=""), f"{who}: task_queue is empty; leave it out for the workflow's own")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: workflow.upsert_memo(["note"]), "upsert_memo: updates must be a dict of names to values, not list"),
        (lambda: workflow.upsert_memo([]), "upsert_memo: updates must be a dict of names to values, not list"),
        (
            lambda: workflow.upsert_search_attributes({"Customer": ["Ann"]}),
            r"upsert_search_attributes take \[key.value_set\(value\), …\] or TypedSearchAttributes, not {'Customer'",
        ),
        (lambda: workflow.upsert_search_attributes(5), "or TypedSearchAttributes, not 5"),
        (
            lambda: workflow.upsert_search_attributes([KEY.value_set("Ann"), "x"]),
            "or TypedSearchAttributes, not 'x' among them",
        ),
        (lambda: workflow.set_current_details(5), "set_current_details: description must be text, not int"),
        (lambda: workflow.version("a", "1", 1), "'a' has min_supported '1', which is str; versions are whole numbers"),
        (lambda: workflow.version("a", 1, 1.5), "'a' has max_supported 1.5, which is float"),
        (lambda: workflow.version("a", 1, 2, new_runs="2"), "'a' has new_runs '2', which is str"),
        (
            lambda: workflow.wait_condition(True),
            "wait_condition: fn must be a function that is asked again and again, not True; such as lambda: self.done",
        ),
        (lambda: workflow.wait_for_signal(""), "wait_for_signal: name is empty"),
        (lambda: workflow.wait_for_signal(5), "wait_for_signal: name must be text, not int"),
    ],
)
def test_a_value_of_the_wrong_kind(call: Callable[[], Any], says: str) -> None:
    refused(call, says)
