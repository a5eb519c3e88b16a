"""Dashboard and alarms. Each alarm says what is wrong and where to begin; each of its metrics costs $0.10 a month."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from api import Api
from cell import Cell
from functions import Functions
from stepwell_server.common import metric_names as names
from storage import Storage

MINUTE = Duration.minutes(1)
FIVE = Duration.minutes(5)


class Observability(Construct):
    """One dashboard, one topic, and an alarm for each way in which an installation goes wrong without a caller seeing
    it."""

    def __init__(
        self, scope: Construct, name: str, cell: Cell, storage: Storage, functions: Functions, api: Api
    ) -> None:
        super().__init__(scope, name)
        self._cell, self._storage, self._functions, self._api = cell, storage, functions, api
        self.topic = self._topic()
        self._work_alarms()
        self._platform_alarms()
        self._dashboard()

    def _topic(self) -> sns.Topic:
        topic = sns.Topic(self, "Alarms", topic_name=f"{self._cell.prefix}-alarms", enforce_ssl=True)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[topic.topic_arn],
            )
        )
        if self._cell.alarm_email:
            topic.add_subscription(subscriptions.EmailSubscription(self._cell.alarm_email))
        return topic

    def own(self, name: str, statistic: str, period: Duration = MINUTE) -> cloudwatch.Metric:
        """A metric that the engine itself reports."""
        return cloudwatch.Metric(
            namespace=names.NAMESPACE,
            metric_name=name,
            dimensions_map={names.CELL: self._cell.name},
            statistic=statistic,
            period=period,
        )

    def _alarm(
        self, name: str, metric: cloudwatch.IMetric, threshold: float, periods: int, description: str
    ) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_name=f"{self._cell.prefix}-{name}",
            alarm_description=description,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            # Nothing runs when nothing happens, and then nothing is reported.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        return alarm

    def _work_alarms(self) -> None:
        self._alarm(
            "backlog-age",
            # Where no worker is left, only what is sent again tells, each time twice as late.
            self.own(names.BACKLOG_AGE, "Maximum", FIVE),
            300,
            1,
            "The oldest task of a task queue has waited for 5 minutes: its workers are gone or too few "
            "(stepwell task-queue describe)",
        )
        self._alarm(
            "schedule-to-start",
            self.own(names.SCHEDULE_TO_START, "p99"),
            60_000,
            10,
            "One in a hundred tasks waits for more than a minute before a worker takes it: too few workers",
        )
        self._alarm(
            "timer-lag",
            self.own(names.TIMER_LAG, "Maximum"),
            60_000,
            5,
            "Deadlines fire more than a minute late: the functions timer-tick or timers fail or are throttled",
        )
        self._alarm(
            "non-determinism",
            self.own(names.NON_DETERMINISM, "Sum", FIVE),
            0,
            1,
            "A workflow's code no longer gives what its history says: roll the workers back, or use a patch "
            "(stepwell workflow list, then show)",
        )
        self._alarm(
            "stuck",
            self.own(names.STUCK, "Sum", FIVE),
            0,
            3,
            "Workflow tasks of the same run fail again and again: its code raises, or no worker knows its type",
        )

    def _platform_alarms(self) -> None:
        storage, functions = self._storage, self._functions
        self._alarm(
            "feed-failures",
            storage.failure_queue.metric_approximate_number_of_messages_visible(period=MINUTE, statistic="Maximum"),
            0,
            1,
            "The feed set records aside: the queue's messages say which. Their runs go on by their deadlines, later",
        )
        self._alarm(
            "feed-age",
            functions.feed.metric("IteratorAge", statistic="Maximum", period=MINUTE),
            60_000,
            5,
            "The feed is more than a minute behind the commits: the function fails, is throttled, or is too slow",
        )
        self._alarm(
            "timers-age",
            storage.timer_queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            1_200,
            3,
            "A deadline has waited for 20 minutes in its queue: the function timers fails on it again and again",
        )
        self._alarm(
            "tick-errors",
            functions.timer_tick.metric_errors(period=FIVE, statistic="Sum"),
            2,
            1,
            "The function timer-tick fails: deadlines that are not yet in the queue will be late",
        )
        self._alarm(
            "api-errors",
            self._api.api.metric_server_error(period=FIVE, statistic="Sum"),
            5,
            2,
            "The API answers with errors of its own (5xx): see the log of the function frontend",
        )
        # Of the two tables that take the writes of work; the dashboard shows all.
        for name, table in (("exec", storage.tables.exec), ("timer", storage.tables.timer)):
            self._alarm(
                f"throttles-{name}",
                table.metric("WriteThrottleEvents", statistic="Sum", period=MINUTE),
                0,
                3,
                f"Writes to the table {name} are throttled: the table's quota, or a hot partition",
            )

    def _dashboard(self) -> None:
        board = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=self._cell.prefix)
        board.add_widgets(
            _graph("Task queues: oldest task, s", self.own(names.BACKLOG_AGE, "Maximum")),
            _graph(
                "Schedule to start, ms",
                self.own(names.SCHEDULE_TO_START, "p50"),
                self.own(names.SCHEDULE_TO_START, "p99"),
            ),
            _graph("Timer lag, ms", self.own(names.TIMER_LAG, "p50"), self.own(names.TIMER_LAG, "Maximum")),
        )
        board.add_widgets(
            _graph("Stuck and non-deterministic", self.own(names.STUCK, "Sum"), self.own(names.NON_DETERMINISM, "Sum")),
            _graph("API: calls", self._api.api.metric_count(statistic="Sum", period=MINUTE)),
            _graph(
                "API: errors",
                self._api.api.metric_client_error(statistic="Sum", period=MINUTE),
                self._api.api.metric_server_error(statistic="Sum", period=MINUTE),
            ),
        )
        board.add_widgets(
            _graph("Failed and to be tried again: records, deadlines", self.own(names.FAILED_RECORDS, "Sum")),
            _graph("Set aside by containers", self.own(names.FEED_FAILURES, "Sum")),
        )
        board.add_widgets(
            _graph(
                "Schedules: started, left out, refused",
                self.own(names.SCHEDULE_STARTED, "Sum"),
                self.own(names.SCHEDULE_SKIPPED, "Sum"),
                self.own(names.SCHEDULE_REFUSED, "Sum"),
            ),
            _graph(
                "Schedules: too late, too many, held back",
                self.own(names.SCHEDULE_MISSED, "Sum"),
                self.own(names.SCHEDULE_OVERRUNS, "Sum"),
                self.own(names.SCHEDULE_RATE_LIMITED, "Sum"),
            ),
            _graph(
                "Schedules: late, ms",
                self.own(names.SCHEDULE_DELAY, "p50"),
                self.own(names.SCHEDULE_DELAY, "Maximum"),
            ),
        )
        functions = self._functions.all
        board.add_widgets(
            _graph("Functions: errors", *[each.metric_errors(period=MINUTE) for each in functions]),
            _graph("Functions: duration p99, ms", *[each.metric_duration(statistic="p99") for each in functions]),
            _graph("Functions: throttles", *[each.metric_throttles(period=MINUTE) for each in functions]),
        )
        tables = self._storage.tables.all()
        board.add_widgets(
            _graph("Tables: written units", *[_consumed(each, "Write") for each in tables]),
            _graph("Tables: read units", *[_consumed(each, "Read") for each in tables]),
            _graph("Tables: throttled", *[_throttled(each, kind) for each in tables for kind in ("Read", "Write")]),
        )
        board.add_widgets(
            _graph("Feed: behind, ms", self._functions.feed.metric("IteratorAge", statistic="Maximum")),
            _graph("Feed: set aside", self._storage.failure_queue.metric_approximate_number_of_messages_visible()),
            _graph("Timers: oldest in queue, s", self._storage.timer_queue.metric_approximate_age_of_oldest_message()),
        )


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8)


def _consumed(table: dynamodb.TableV2, kind: str) -> cloudwatch.Metric:
    return table.metric(f"Consumed{kind}CapacityUnits", statistic="Sum", period=MINUTE)


def _throttled(table: dynamodb.TableV2, kind: str) -> cloudwatch.Metric:
    return table.metric(f"{kind}ThrottleEvents", statistic="Sum", period=MINUTE)
