"""Activities that fail, and a workflow that calls one of them with a policy."""

from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError


@activity.defn
async def third_time_lucky() -> int:
    attempt = activity.info().attempt
    if attempt < 3:
        raise ApplicationError(f"attempt {attempt}", type="Unlucky")
    return attempt


@activity.defn
async def declined() -> None:
    raise ApplicationError("card 42", "limit", type="Declined")


@activity.defn
async def final() -> None:
    raise ApplicationError("no such card", type="Unknown", non_retryable=True)


class DeclinedForEver(Exception):
    """Its name begins as that of another type does."""


@activity.defn
async def similar() -> int:
    attempt = activity.info().attempt
    if attempt < 2:
        raise DeclinedForEver("a subclass or a longer name is another type")
    return attempt


@activity.defn
async def names_its_delay() -> int:
    attempt = activity.info().attempt
    if attempt < 2:
        raise ApplicationError("busy", type="Busy", next_retry_delay=timedelta(milliseconds=10))
    return attempt


ACTIVITIES = (third_time_lucky, declined, final, similar, names_its_delay)


@workflow.defn
async def calls(name: str, policy: dict[str, Any]) -> Any:
    if "first" in policy:
        policy["initial_interval"] = timedelta(seconds=policy.pop("first"))
    return await workflow.execute_activity(
        name, start_to_close_timeout=timedelta(seconds=30), retry_policy=RetryPolicy(**policy)
    )
