"""The functions and what each of them may do: a table of permissions, one row for each of a function's needs."""

from dataclasses import dataclass

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cell import BadSetting, Cell
from stepwell_server.adapters.aws.names import STARTS_INDEX
from stepwell_server.common.telemetry import TRACING
from stepwell_server.history.archive_objects import HISTORIES, INDEX
from storage import TIMER_FUNCTION_TIMEOUT, Storage

ENTRY_POINTS = "stepwell_server.entrypoints"
RUNTIME = lambda_.Runtime.PYTHON_3_13

LOG = ("GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem")
"""Deletes too: who meets an expired log clears away what is left of it."""

READ = ("GetItem", "Query")
CHANGE = ("PutItem", "UpdateItem")
SEND = ("SendMessage", "GetQueueUrl")
MAKE = ("CreateQueue", "TagQueue", "GetQueueAttributes")
TAKE = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")


@dataclass(frozen=True, slots=True)
class Need:
    """What one function has to do, as actions by resource. Every write of the engine is a put or an update of one
    item under a condition; what is deleted is said apart."""

    exec: tuple[str, ...] = ()
    timer: tuple[str, ...] = ()
    ctl: tuple[str, ...] = ()
    vis: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()
    erases_archives: bool = False
    """Runs that are deleted go from the archive as well, and all of a namespace that is."""
    task_queues: tuple[str, ...] = ()
    timer_queue: tuple[str, ...] = ()
    failure_queue: tuple[str, ...] = ()
    signs_tokens: bool = False
    """Builds an engine, which needs the key of the tokens."""


NEEDS: dict[str, Need] = {
    "frontend": Need(
        exec=LOG,
        timer=CHANGE,
        ctl=(*READ, *CHANGE, "DeleteItem"),
        vis=(*READ, "BatchGetItem"),
        blobs=("GetObject", "PutObject"),
        erases_archives=True,
        task_queues=(*SEND, *MAKE),
        timer_queue=SEND,
        signs_tokens=True,
    ),
    "feed": Need(
        exec=LOG,
        timer=CHANGE,
        ctl=(*READ, *CHANGE, "DeleteItem"),
        vis=("GetItem", *CHANGE, "DeleteItem"),
        blobs=("GetObject", "PutObject"),
        erases_archives=True,
        task_queues=(*SEND, *MAKE),
        timer_queue=SEND,
        signs_tokens=True,
    ),
    "timer-tick": Need(
        # Collects blobs that no run needs: reads the log, and clears away what has expired of it.
        exec=LOG,
        vis=("GetItem",),
        blobs=("GetObject", "PutObject", "DeleteObject"),
        # Promotes what is a day ahead, and asks when the table was made.
        timer=(*READ, *CHANGE, "DescribeTable"),
        ctl=(*READ, *CHANGE),
        timer_queue=SEND,
    ),
    "timers": Need(
        exec=LOG,
        timer=(*READ, *CHANGE),
        # Fires wake-ups as well, of which one empties namespaces that were deleted: it lists what is in them.
        ctl=(*READ, *CHANGE, "DeleteItem"),
        vis=(*READ, "BatchGetItem", "PutItem"),
        blobs=("GetObject", "PutObject"),
        erases_archives=True,
        task_queues=(*SEND, *MAKE),
        timer_queue=(*SEND, *TAKE),
        signs_tokens=True,
    ),
}


class Functions(Construct):
    """One function for each entry point, from one package, each with a role and a log of its own."""

    def __init__(self, scope: Construct, name: str, cell: Cell, storage: Storage) -> None:
        super().__init__(scope, name)
        if not cell.package.is_dir():
            raise BadSetting(f"package: {cell.package} is not there; `python3 scripts/infra.py package` makes it")
        self._cell, self._storage = cell, storage
        self._code = lambda_.Code.from_asset(str(cell.package))
        self.all: list[lambda_.Function] = []
        # The longest that an HTTP API waits is 30 s: the function ends before, with an answer of its own.
        self.frontend = self._function("frontend", memory=1024, timeout=Duration.seconds(29))
        self.feed = self._function("feed", memory=512, timeout=Duration.seconds(60))
        self.timer_tick = self._function("timer-tick", memory=256, timeout=Duration.seconds(55))
        self.timers = self._function("timers", memory=512, timeout=TIMER_FUNCTION_TIMEOUT)

    def _function(self, name: str, *, memory: int, timeout: Duration) -> lambda_.Alias:
        cell = self._cell
        # A snapshot costs by its size and time: only where somebody waits for the answer, and only when asked for.
        snap_start = cell.snap_start and name == "frontend"
        function = lambda_.Function(
            self,
            _title(name),
            function_name=f"{cell.prefix}-{name}",
            runtime=RUNTIME,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"{ENTRY_POINTS}.aws_{name.replace('-', '_')}.handler",
            code=self._code,
            memory_size=memory,
            timeout=timeout,
            role=self._role(name),
            log_group=self._log(name),
            logging_format=lambda_.LoggingFormat.JSON,
            environment=environment(cell, self._storage),
            environment_encryption=self._storage.key,
            tracing=lambda_.Tracing.ACTIVE if cell.tracing else lambda_.Tracing.DISABLED,
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if snap_start else None,
        )
        self.all.append(function)
        # Only a published version is started from a snapshot, so everything calls the version behind this name.
        live = f"{_title(name)}Live"
        return lambda_.Alias(self, live, alias_name="live", version=function.current_version)

    def _role(self, name: str) -> iam.Role:
        role = iam.Role(
            self,
            f"{_title(name)}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"Stepwell {self._cell.name}: the function {name}",
        )
        allow(role, self._cell, self._storage, NEEDS[name])
        return role

    def _log(self, name: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            f"{_title(name)}Log",
            log_group_name=f"/stepwell/{self._cell.name}/{name}",
            retention=retention(self._cell.log_days),
            removal_policy=RemovalPolicy.DESTROY,
        )


def _title(name: str) -> str:
    return name.title().replace("-", "")


def retention(days: int) -> logs.RetentionDays:
    """CloudWatch Logs has names for the numbers of days that it knows."""
    names = {1: "ONE_DAY", 3: "THREE_DAYS", 5: "FIVE_DAYS", 7: "ONE_WEEK", 14: "TWO_WEEKS", 30: "ONE_MONTH"}
    names |= {60: "TWO_MONTHS", 90: "THREE_MONTHS", 120: "FOUR_MONTHS", 150: "FIVE_MONTHS", 180: "SIX_MONTHS"}
    names |= {365: "ONE_YEAR", 400: "THIRTEEN_MONTHS", 545: "EIGHTEEN_MONTHS", 731: "TWO_YEARS", 1096: "THREE_YEARS"}
    names |= {1827: "FIVE_YEARS", 2192: "SIX_YEARS", 2557: "SEVEN_YEARS", 2922: "EIGHT_YEARS", 3288: "NINE_YEARS"}
    return logs.RetentionDays[names.get(days, "TEN_YEARS")]


def environment(cell: Cell, storage: Storage) -> dict[str, str]:
    """What functions and containers are told; everything else follows from the cell's name."""
    variables = {
        "STEPWELL_CELL": cell.name,
        "STEPWELL_BUCKET": storage.bucket.bucket_name,
        "STEPWELL_OFFLOAD_THRESHOLD": str(cell.offload_kb * 1024),
        "STEPWELL_TIMER_PARTITIONS": str(cell.timer_partitions),
        # Beside a parameter, the secret that this cell may have had before: its text becomes the parameter's.
        "STEPWELL_TOKEN_KEY_PARAMETER": cell.names.token_key_secret,
        "POWERTOOLS_SERVICE_NAME": "stepwell",
        "POWERTOOLS_LOG_LEVEL": "WARNING",
    }
    if cell.tracing:
        variables[TRACING] = "on"
    else:
        variables["POWERTOOLS_TRACE_DISABLED"] = "true"
    if not cell.token_secret:
        variables["STEPWELL_TOKEN_KEY_SSM_PARAMETER"] = cell.names.token_key_parameter
    if storage.key is not None:
        variables["STEPWELL_KMS_KEY"] = storage.key.key_arn
    if cell.callback_addresses:
        variables["STEPWELL_CALLBACK_ADDRESSES"] = cell.callback_addresses
    variables |= cell.visibility.variables()
    if cell.endpoint:
        variables["AWS_ENDPOINT_URL"] = cell.endpoint
    return variables


def task_queue_arns(cell: Cell) -> list[str]:
    """Task queues have a hash of 16 digits where the installation's own queues have a word."""
    start = f"arn:{Aws.PARTITION}:sqs:{Aws.REGION}:{Aws.ACCOUNT_ID}:{cell.prefix}-{'?' * 16}"
    return [f"{start}-wft-*", f"{start}-act-*"]


def token_secret_arns(cell: Cell) -> list[str]:
    """Secrets Manager appends six characters to a name. A secret that is not there has none of them, and who may not
    ask for that is told that it is forbidden, not that there is none."""
    name = cell.names.token_key_secret
    start = f"arn:{Aws.PARTITION}:secretsmanager:{Aws.REGION}:{Aws.ACCOUNT_ID}:secret:{name}"
    return [f"{start}-{'?' * 6}", start]


def token_parameter_arn(cell: Cell) -> str:
    name = cell.names.token_key_parameter
    return f"arn:{Aws.PARTITION}:ssm:{Aws.REGION}:{Aws.ACCOUNT_ID}:parameter{name}"


def archive_arns(storage: Storage) -> list[str]:
    return [storage.bucket.arn_for_objects(f"{prefix}*") for prefix in (HISTORIES, INDEX)]


def queue_actions(cell: Cell, actions: tuple[str, ...]) -> tuple[str, ...]:
    """On AWS an action covers its batch. The emulator asks for the batch's own name, which AWS does not know."""
    if not cell.endpoint:
        return actions
    several = ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")
    return actions + tuple(f"{each}Batch" for each in actions if each in several)


def allow(role: iam.IGrantable, cell: Cell, storage: Storage, need: Need) -> None:
    """Writes a need into a role's policy."""
    tables = storage.tables
    for table, actions in (
        (tables.exec, need.exec),
        (tables.timer, need.timer),
        (tables.ctl, need.ctl),
        *((table, need.vis) for table in tables.of_lists()),
    ):
        _allow(role, "dynamodb", actions, [table.table_arn])
    for table in tables.of_lists():
        _allow(role, "dynamodb", tuple(set(need.vis) & {"Query"}), [f"{table.table_arn}/index/{STARTS_INDEX}"])
    _allow(role, "s3", need.blobs, [storage.bucket.arn_for_objects("*")])
    if need.erases_archives:
        _allow(role, "s3", ("DeleteObject",), archive_arns(storage))
    if need.blobs:
        # Without it an object that is not there reads as forbidden.
        _allow(role, "s3", ("ListBucket",), [storage.bucket.bucket_arn])
    _allow(role, "sqs", queue_actions(cell, need.task_queues), task_queue_arns(cell))
    _allow(role, "sqs", queue_actions(cell, need.timer_queue), [storage.timer_queue.queue_arn])
    _allow(role, "sqs", queue_actions(cell, need.failure_queue), [storage.failure_queue.queue_arn])
    if need.signs_tokens:
        _allow(role, "secretsmanager", ("GetSecretValue",), token_secret_arns(cell))
        if not cell.token_secret:
            _allow_parameter(role, token_parameter_arn(cell))
    storage.allow_key(role)


def _allow(role: iam.IGrantable, service: str, actions: tuple[str, ...], resources: list[str]) -> None:
    if actions:
        statement = iam.PolicyStatement(actions=[f"{service}:{each}" for each in actions], resources=resources)
        role.grant_principal.add_to_principal_policy(statement)


def _allow_parameter(role: iam.IGrantable, arn: str) -> None:
    """The first process makes it, since CloudFormation makes no encrypted ones; none may replace it."""
    _allow(role, "ssm", ("GetParameter", "PutParameter"), [arn])
    denied = iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["ssm:PutParameter"],
        resources=[arn],
        conditions={"StringEquals": {"ssm:Overwrite": "true"}},
    )
    role.grant_principal.add_to_principal_policy(denied)
