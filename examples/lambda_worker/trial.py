"""A trial of a month, and then the first bill. Between its steps it takes no process, no connection and no memory."""

from dataclasses import dataclass
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy

TASK_QUEUE = "trials"


@dataclass
class Trial:
    customer: str
    lasts: timedelta = timedelta(days=30)


@activity.defn
def send_welcome(customer: str) -> None:
    """Stands for a call of a mail service. A plain function: it runs in a thread."""
    activity.logger.info("welcome, %s", customer)


@activity.defn
def bill(customer: str) -> str:
    """The workflow's id is the same for each attempt: by it, a payment service knows a repeat."""
    return f"bill-{activity.info().workflow_id}-{customer}"


@workflow.defn
class TrialMonth:
    def __init__(self) -> None:
        self.state = "welcomed"

    @workflow.run
    async def run(self, trial: Trial) -> str:
        retries = RetryPolicy(maximum_interval=timedelta(minutes=1))
        await workflow.execute_activity(
            send_welcome, trial.customer, start_to_close_timeout=timedelta(seconds=20), retry_policy=retries
        )
        self.state = "on trial"
        try:
            await workflow.wait_condition(lambda: self.state == "cancelled", timeout=trial.lasts)
        except TimeoutError:
            self.state = "customer"
            return await workflow.execute_activity(
                bill, trial.customer, start_to_close_timeout=timedelta(seconds=20), retry_policy=retries
            )
        return "no bill"

    @workflow.signal
    def cancel(self) -> None:
        self.state = "cancelled"

    @workflow.query
    def how_far(self) -> str:
        return self.state
