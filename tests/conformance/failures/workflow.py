"""Failures that cross activities and workflows, and bugs that do not."""

from collections import Counter
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError

LIMIT = timedelta(seconds=30)
ONCE = RetryPolicy(maximum_attempts=1)


class CardProblem(Exception):
    """Not one of this package's errors."""


@activity.defn
async def charge() -> None:
    try:
        try:
            raise KeyError("card 42")
        except KeyError as error:
            raise CardProblem("no such card") from error
    except CardProblem as error:
        raise ApplicationError("cannot charge", {"card": 42}, type="Payment", non_retryable=True) from error


@workflow.defn
async def lets_through() -> None:
    await workflow.execute_activity(charge, start_to_close_timeout=LIMIT, retry_policy=ONCE)


@workflow.defn
async def wraps() -> None:
    try:
        await workflow.execute_activity(charge, start_to_close_timeout=LIMIT, retry_policy=ONCE)
    except ActivityError as error:
        raise ApplicationError("no order", "order 1", type="Order") from error


@workflow.defn
async def reads_the_chain() -> list[str]:
    try:
        await workflow.execute_activity(charge, start_to_close_timeout=LIMIT, retry_policy=ONCE)
    except ActivityError as error:
        chain: list[str] = []
        link: BaseException | None = error
        while link is not None:
            chain.append(str(getattr(link, "type", None) or type(link).__name__))
            link = link.__cause__
        return chain
    return []


@workflow.defn
async def fails_by_itself() -> None:
    raise ApplicationError("as told", 1, type="Told")


_attempts: Counter[str] = Counter()


@workflow.defn
async def has_a_bug(failing: int) -> str:
    """Somebody repairs it behind so many failures."""
    workflow_id = workflow.info().workflow_id
    _attempts[workflow_id] += 1
    if _attempts[workflow_id] <= failing:
        raise CardProblem(f"bug {_attempts[workflow_id]}")
    return "repaired"


@workflow.defn
async def has_a_bug_for_ever() -> None:
    raise CardProblem("bug")
