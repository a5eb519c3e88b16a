"""What an installation keeps: four tables, a bucket, and the queues that it has from the start.

Task queues and the parameter that signs task tokens are not here: they are made when they are first used. Nothing here
is deleted with the stack unless the cell says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cell import Cell
from stepwell_server.adapters.aws.names import EXPIRY_ATTRIBUTE
from stepwell_server.adapters.aws.tables import table_definitions

TIMER_FUNCTION_TIMEOUT = Duration.seconds(60)


@dataclass(frozen=True, slots=True)
class Tables:
    """``exec``: commit log and activity items; ``timer``: armed deadlines; ``ctl``: namespaces, settings of queues,
    leases; ``vis``: what lists show; ``second_vis``: the same, while the cell moves to it."""

    exec: dynamodb.TableV2
    timer: dynamodb.TableV2
    ctl: dynamodb.TableV2
    vis: dynamodb.TableV2
    second_vis: dynamodb.TableV2 | None = None

    def of_lists(self) -> tuple[dynamodb.TableV2, ...]:
        return (self.vis,) if self.second_vis is None else (self.vis, self.second_vis)

    def all(self) -> tuple[dynamodb.TableV2, ...]:
        return self.exec, self.timer, self.ctl, *self.of_lists()


class Storage(Construct):
    """Everything that outlives a call."""

    def __init__(self, scope: Construct, name: str, cell: Cell) -> None:
        super().__init__(scope, name)
        self._cell = cell
        self._removal = RemovalPolicy.DESTROY if cell.destroy else RemovalPolicy.RETAIN
        self.key = self._key() if cell.customer_key else None
        self.tables = Tables(*[self._table(each) for each in table_definitions(cell.names, cell.visibility)])
        self.bucket = self._bucket()
        # What AWS advises, so that a message is not given out again while retries of its batch still wait.
        held = Duration.seconds(6 * int(TIMER_FUNCTION_TIMEOUT.to_seconds()))
        self.timer_queue = self._queue("Timers", cell.names.timer_queue, visibility_timeout=held)
        self.failure_queue = self._queue("FeedFailures", cell.names.failure_queue)
        self.token_secret = self._token_secret() if cell.token_secret else None

    def _key(self) -> kms.Key:
        description = f"Data of Stepwell, cell {self._cell.name}"
        return kms.Key(self, "Key", description=description, enable_key_rotation=True, removal_policy=self._removal)

    def _table(self, definition: Mapping[str, Any]) -> dynamodb.TableV2:
        """As ``stepwell aws bootstrap`` makes it, and with what keeps data: backups, protection, keys."""
        encryption = dynamodb.TableEncryptionV2.dynamo_owned_key()
        if self.key is not None:
            encryption = dynamodb.TableEncryptionV2.customer_managed_key(self.key)
        name = definition["TableName"]
        partition_key, sort_key = _keys(definition)
        stream = definition.get("StreamSpecification")
        return dynamodb.TableV2(
            self,
            name.removeprefix(f"{self._cell.prefix}-").capitalize(),
            table_name=name,
            partition_key=partition_key,
            sort_key=sort_key,
            billing=dynamodb.Billing.on_demand(),
            dynamo_stream=dynamodb.StreamViewType[stream["StreamViewType"]] if stream else None,
            global_secondary_indexes=[_index(each) for each in definition.get("GlobalSecondaryIndexes", ())],
            encryption=encryption,
            time_to_live_attribute=EXPIRY_ATTRIBUTE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=not self._cell.destroy,
            removal_policy=self._removal,
        )

    def _bucket(self) -> s3.Bucket:
        """Payloads under ``p/``, archived histories under ``h/``, their index under ``i/``."""
        encryption = s3.BucketEncryption.S3_MANAGED if self.key is None else s3.BucketEncryption.KMS
        return s3.Bucket(
            self,
            "Bucket",
            encryption=encryption,
            encryption_key=self.key,
            bucket_key_enabled=self.key is not None or None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            lifecycle_rules=[
                # Payloads have no rule by age: only the engine knows what an open run still refers to.
                s3.LifecycleRule(id="uploads", abort_incomplete_multipart_upload_after=Duration.days(1)),
                s3.LifecycleRule(id="archive", prefix="h/", transitions=[_rarely_read()]),
            ],
            removal_policy=self._removal,
        )

    def _queue(self, id: str, name: str, visibility_timeout: Duration | None = None) -> sqs.Queue:
        return sqs.Queue(
            self,
            id,
            queue_name=name,
            encryption=sqs.QueueEncryption.SQS_MANAGED if self.key is None else sqs.QueueEncryption.KMS,
            encryption_master_key=self.key,
            enforce_ssl=True,
            visibility_timeout=visibility_timeout,
            retention_period=Duration.days(14),
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _token_secret(self) -> secretsmanager.Secret:
        """Its place in the stack is that of former releases, which always had one."""
        return secretsmanager.Secret(
            self,
            "TokenKey",
            secret_name=self._cell.names.token_key_secret,
            description="Signs the tokens of workflow and activity tasks",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            encryption_key=self.key,
            removal_policy=self._removal,
        )

    def allow_key(self, grantee: iam.IGrantable) -> None:
        """What is encrypted with the account's own key needs the key as well."""
        if self.key is not None:
            self.key.grant_encrypt_decrypt(grantee)


def _rarely_read() -> s3.Transition:
    return s3.Transition(storage_class=s3.StorageClass.INTELLIGENT_TIERING, transition_after=Duration.days(30))


def _keys(definition: Mapping[str, Any]) -> tuple[dynamodb.Attribute, dynamodb.Attribute]:
    """Partition and sort key; all keys are texts."""
    names = [each["AttributeName"] for each in definition["KeySchema"]]
    first, second = (dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING) for name in names)
    return first, second


def _index(definition: Mapping[str, Any]) -> dynamodb.GlobalSecondaryIndexPropsV2:
    partition_key, sort_key = _keys(definition)
    projection = definition["Projection"]
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=definition["IndexName"],
        partition_key=partition_key,
        sort_key=sort_key,
        projection_type=dynamodb.ProjectionType[projection["ProjectionType"]],
        non_key_attributes=projection.get("NonKeyAttributes"),
    )
