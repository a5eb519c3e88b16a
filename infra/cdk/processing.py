"""What runs behind a commit: the stream feeds one function, deadlines pass through a queue, a tick each minute."""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct

from cell import Cell
from functions import Functions
from storage import Storage

COMMITS = "C#"
"""How the sort keys of commits begin. Activity items need no feed: who writes them wakes the run."""


class Processing(Construct):
    """The two mappings and the schedule."""

    def __init__(self, scope: Construct, name: str, cell: Cell, storage: Storage, functions: Functions) -> None:
        super().__init__(scope, name)
        functions.feed.add_event_source(_feed_source(storage))
        functions.timers.add_event_source(sources.SqsEventSource(storage.timer_queue, **_TIMERS))
        events.Rule(
            self,
            "Tick",
            rule_name=f"{cell.prefix}-timer-tick",
            description="Moves the deadlines of the next two minutes to the queue of timers",
            schedule=events.Schedule.rate(Duration.minutes(1)),
            # A tick that is late is of no use: the next one does its work.
            targets=[targets.LambdaFunction(functions.timer_tick, retry_attempts=0, max_event_age=Duration.minutes(1))],
        )


_TIMERS: dict[str, Any] = {"batch_size": 10, "report_batch_item_failures": True}


def _feed_source(storage: Storage) -> sources.DynamoEventSource:
    """Without bounds one bad record would hold up its shard for a day. What is set aside is not lost: the deadline of
    its run does the work, later."""
    return sources.DynamoEventSource(
        storage.tables.exec,
        # LATEST would miss what is committed while the mapping is being made.
        starting_position=lambda_.StartingPosition.TRIM_HORIZON,
        batch_size=100,
        parallelization_factor=4,
        bisect_batch_on_error=True,
        report_batch_item_failures=True,
        retry_attempts=8,
        max_record_age=Duration.hours(6),
        on_failure=sources.SqsDlq(storage.failure_queue),
        filters=feed_filters(),
    )


def feed_filters() -> list[Any]:
    """New commits; what is left of an expired log is deleted before a new one begins in its place. Changes of commits
    only say when they expire."""
    keys = {"Keys": {"sk": {"S": lambda_.FilterRule.begins_with(COMMITS)}}}
    return [lambda_.FilterCriteria.filter({"eventName": lambda_.FilterRule.is_equal("INSERT"), "dynamodb": keys})]
