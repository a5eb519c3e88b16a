"""What the template must say, whatever else it says."""

import json
from typing import Any, get_args

import pytest
from aws_cdk.assertions import Match, Template

from functions import NEEDS
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.tables import table_definitions
from stepwell_server.frontend.roles import Role
from stepwell_server.frontend.routes import ROUTES


def of_type(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    found = template.to_json()["Resources"]
    return {name: each for name, each in found.items() if each["Type"] == kind}


def properties(template: Template, kind: str) -> list[dict[str, Any]]:
    return [each.get("Properties", {}) for each in of_type(template, kind).values()]


def statements(template: Template, role: str) -> list[dict[str, Any]]:
    """Of the policy of one role, by the beginning of its logical id."""
    for name, policy in of_type(template, "AWS::IAM::Policy").items():
        if name.startswith(role):
            found: list[dict[str, Any]] = policy["Properties"]["PolicyDocument"]["Statement"]
            return found
    raise AssertionError(f"no policy of {role}")


def actions(statement: dict[str, Any]) -> set[str]:
    found = statement["Action"]
    return {found} if isinstance(found, str) else set(found)


def resources(statement: dict[str, Any]) -> list[str]:
    found = statement["Resource"]
    return [json.dumps(each) for each in (found if isinstance(found, list) else [found])]


@pytest.mark.parametrize("name", ["exec", "timer", "ctl", "vis"])
def test_tables(plain: Template, name: str) -> None:
    table = {
        "TableName": f"stepwell-main-{name}",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "TimeToLiveSpecification": {"AttributeName": "x", "Enabled": True},
        "Replicas": [
            Match.object_like(
                {
                    "DeletionProtectionEnabled": True,
                    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                }
            )
        ],
        "GlobalSecondaryIndexes": Match.any_value() if name == "vis" else Match.absent(),
        "LocalSecondaryIndexes": Match.absent(),
        "StreamSpecification": {"StreamViewType": "NEW_IMAGE"} if name == "exec" else Match.absent(),
    }
    plain.has_resource("AWS::DynamoDB::GlobalTable", {"Properties": table, "DeletionPolicy": "Retain"})
    plain.resource_count_is("AWS::DynamoDB::GlobalTable", 4)


def test_tables_are_those_that_bootstrap_makes(plain: Template) -> None:
    """An index on exec would throttle its writes; the product's own definition has the only one."""
    definitions = {each["TableName"]: each for each in table_definitions(Names())}
    for table in properties(plain, "AWS::DynamoDB::GlobalTable"):
        definition = definitions.pop(table["TableName"])
        assert table["KeySchema"] == definition["KeySchema"]
        assert table["AttributeDefinitions"] == definition["AttributeDefinitions"]
        assert table.get("GlobalSecondaryIndexes") == definition.get("GlobalSecondaryIndexes")
        stream = definition.get("StreamSpecification", {}).get("StreamViewType")
        assert table.get("StreamSpecification", {}).get("StreamViewType") == stream
    assert definitions == {}


def test_what_is_kept_stays_when_the_stack_goes(plain: Template, full: Template) -> None:
    kinds = ("AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
    for kind in kinds:
        assert all(each["DeletionPolicy"] == "Retain" for each in of_type(plain, kind).values())
        assert all(each["DeletionPolicy"] == "Delete" for each in of_type(full, kind).values())


def test_a_second_visibility_table_is_as_the_first_and_may_be_used_as_it(plain: Template, full: Template) -> None:
    first, second = (
        next(each for each in properties(full, "AWS::DynamoDB::GlobalTable") if each["TableName"].endswith(name))
        for name in ("-vis", "-vis2")
    )
    assert first | {"TableName": ""} == second | {"TableName": ""}
    policies = of_type(full, "AWS::IAM::Policy").values()
    allowed = [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
    for_first, for_second = (
        sorted(
            (sorted(actions(each)), "index" in resource)
            for each in allowed
            for resource in resources(each)
            if f"StorageVis{number}" in resource and f"StorageVis{number}2" not in resource
        )
        for number in ("", "2")
    )
    assert for_first == for_second and len(for_first) > 4
    for function in properties(full, "AWS::Lambda::Function"):
        variables = function["Environment"]["Variables"]
        told = {name: value for name, value in variables.items() if "VISIBILITY" in name}
        assert told == {
            "STEPWELL_VISIBILITY": "vis",
            "STEPWELL_SECOND_VISIBILITY": "vis2",
            "STEPWELL_VISIBILITY_READS": "second",
            "STEPWELL_VISIBILITY_SHADOW_PERCENT": "5",
        }
    assert "VISIBILITY" not in json.dumps(plain.to_json())


def test_bucket(plain: Template) -> None:
    plain.has_resource_properties(
        "AWS::S3::Bucket",
        {
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
            "BucketEncryption": Match.any_value(),
            "LifecycleConfiguration": {
                "Rules": Match.array_with(
                    [Match.object_like({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}})]
                )
            },
        },
    )
    [bucket] = properties(plain, "AWS::S3::Bucket")
    for rule in bucket["LifecycleConfiguration"]["Rules"]:
        assert not any("Expiration" in key for key in rule), "an open run may refer to what is old"
    for kind in ("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy"):
        for policy in properties(plain, kind):
            denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
            assert any(each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}} for each in denied)


def test_customer_key_is_everywhere(full: Template) -> None:
    full.resource_count_is("AWS::KMS::Key", 1)
    full.has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    for table in properties(full, "AWS::DynamoDB::GlobalTable"):
        assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
    for queue in properties(full, "AWS::SQS::Queue"):
        assert "KmsMasterKeyId" in queue
    for function in properties(full, "AWS::Lambda::Function"):
        assert "KmsKeyArn" in function
        variables = function["Environment"]["Variables"]
        assert variables["STEPWELL_TIMER_PARTITIONS"] == "16"
        assert variables["STEPWELL_CALLBACK_ADDRESSES"] == "https://hooks.example.com,https://*.example.org"
        assert "STEPWELL_KMS_KEY" in variables and variables["STEPWELL_OFFLOAD_THRESHOLD"] == "16384"
    [bucket] = properties(full, "AWS::S3::Bucket")
    assert "aws:kms" in json.dumps(bucket["BucketEncryption"])
    assert "KmsKeyId" in properties(full, "AWS::SecretsManager::Secret")[0]


def test_functions(plain: Template, full: Template) -> None:
    handlers = {each["FunctionName"]: each["Handler"] for each in properties(plain, "AWS::Lambda::Function")}
    assert handlers == {
        "stepwell-main-frontend": "stepwell_server.entrypoints.aws_frontend.handler",
        "stepwell-main-feed": "stepwell_server.entrypoints.aws_feed.handler",
        "stepwell-main-timer-tick": "stepwell_server.entrypoints.aws_timer_tick.handler",
        "stepwell-main-timers": "stepwell_server.entrypoints.aws_timers.handler",
    }
    for function in properties(plain, "AWS::Lambda::Function"):
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == "python3.13"
        assert function["Environment"]["Variables"]["STEPWELL_CELL"] == "main"
        assert function["Environment"]["Variables"]["STEPWELL_TIMER_PARTITIONS"] == "4"
        assert function["Environment"]["Variables"]["STEPWELL_TOKEN_KEY_PARAMETER"] == "stepwell-main-token-key"
        assert function["Environment"]["Variables"]["STEPWELL_TOKEN_KEY_SSM_PARAMETER"] == "/stepwell/main/token-key"
        assert "AWS_ENDPOINT_URL" not in function["Environment"]["Variables"]
        assert "SnapStart" not in function
        assert "ReservedConcurrentExecutions" not in function
    snapped = {each["FunctionName"] for each in properties(full, "AWS::Lambda::Function") if "SnapStart" in each}
    assert snapped == {"stepwell-blue-2-frontend"}


def test_the_api_answers_before_its_gateway_gives_up(plain: Template) -> None:
    plain.has_resource_properties("AWS::Lambda::Function", {"FunctionName": "stepwell-main-frontend", "Timeout": 29})


def test_feed_mapping(plain: Template) -> None:
    [mapping] = [each for each in properties(plain, "AWS::Lambda::EventSourceMapping") if "StartingPosition" in each]
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert 0 < mapping["MaximumRetryAttempts"] <= 10
    assert 0 < mapping["MaximumRecordAgeInSeconds"] < 24 * 3600, "one bad record must not hold its shard for a day"
    assert "StorageFeedFailures" in json.dumps(mapping["DestinationConfig"]["OnFailure"])
    filters = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    commits = {"Keys": {"sk": {"S": [{"prefix": "C#"}]}}}
    assert filters == [{"eventName": ["INSERT"], "dynamodb": commits}]


def test_timers_mapping_and_tick(plain: Template) -> None:
    [mapping] = [
        each for each in properties(plain, "AWS::Lambda::EventSourceMapping") if "StartingPosition" not in each
    ]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    [queue] = [each for each in properties(plain, "AWS::SQS::Queue") if each["QueueName"] == "stepwell-main-timers"]
    [timers] = [
        each for each in properties(plain, "AWS::Lambda::Function") if each["FunctionName"] == "stepwell-main-timers"
    ]
    assert queue["VisibilityTimeout"] >= 6 * timers["Timeout"]
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert "RedrivePolicy" not in queue, "a deadline that is set aside would leave its run waiting"
    plain.has_resource_properties("AWS::Events::Rule", {"ScheduleExpression": "rate(1 minute)", "State": "ENABLED"})


def test_every_route_is_the_products_and_asks_for_a_signature(plain: Template) -> None:
    routes = properties(plain, "AWS::ApiGatewayV2::Route")
    expected = {f"POST {route.operation.path}" for route in ROUTES} | {"POST /api/v1/{proxy+}"}
    assert {route["RouteKey"] for route in routes} == expected
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}
    [api] = properties(plain, "AWS::ApiGatewayV2::Api")
    assert "CorsConfiguration" not in api


def test_access_log_names_the_caller(plain: Template, full: Template) -> None:
    assert "AccessLogSettings" not in properties(plain, "AWS::ApiGatewayV2::Stage")[0]
    [stage] = properties(full, "AWS::ApiGatewayV2::Stage")
    assert json.loads(stage["AccessLogSettings"]["Format"])["caller"] == "$context.identity.userArn"


ROLES = {"frontend": "Frontend", "feed": "Feed", "timer-tick": "TimerTick", "timers": "Timers"}


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_roles_have_no_wildcard_actions_and_no_foreign_resources(plain: Template, name: str) -> None:
    for statement in statements(plain, f"Functions{ROLES[name]}Role"):
        assert not any("*" in action for action in actions(statement)), statement
        assert all('"*"' != each for each in resources(statement)), statement


def test_what_each_role_cannot_do(plain: Template) -> None:
    def may(role: str) -> set[str]:
        return {action for each in statements(plain, f"Functions{role}Role") for action in actions(each)}

    assert "sqs:ReceiveMessage" not in may("Frontend") | may("Feed") | may("TimerTick")
    for role in ("Frontend", "Timers", "Feed"):
        deleting = [each for each in statements(plain, f"Functions{role}Role") if "s3:DeleteObject" in actions(each)]
        assert [[arn[-8:] for arn in sorted(resources(each))] for each in deleting] == [['/h/*"]]}', '/i/*"]]}']], role
    for role in ROLES.values():
        assert not may(role) & {"dynamodb:DeleteTable", "sqs:DeleteQueue", "sqs:PurgeQueue", "s3:DeleteBucket"}


def test_the_key_of_tokens_is_read_and_made_and_never_replaced(plain: Template, full: Template) -> None:
    """By those who sign. A secret costs $0.40 a month, and is there where the cell asks for one."""
    plain.resource_count_is("AWS::SecretsManager::Secret", 0)
    full.resource_count_is("AWS::SecretsManager::Secret", 1)
    for name, role in ROLES.items():
        found = statements(plain, f"Functions{role}Role")
        about = [each for each in found if any(":parameter/" in arn for arn in resources(each))]
        if not NEEDS[name].signs_tokens:
            assert about == []
            continue
        allowed, denied = about
        assert actions(allowed) == {"ssm:GetParameter", "ssm:PutParameter"}
        assert resources(allowed)[0].endswith(':parameter/stepwell/main/token-key"]]}')
        assert (denied["Effect"], actions(denied)) == ("Deny", {"ssm:PutParameter"})
        assert denied["Condition"] == {"StringEquals": {"ssm:Overwrite": "true"}}
        assert not [each for each in statements(full, f"Functions{role}Role") if ":parameter/" in json.dumps(each)]


def test_only_the_tick_deletes_blobs(plain: Template) -> None:
    """It collects what no run needs, for which it reads commits; whoever answers calls can delete no payload."""
    for name, need in NEEDS.items():
        assert ("DeleteObject" in need.blobs) == (name == "timer-tick")


def test_access_policies(plain: Template, full: Template) -> None:
    assert {each["ManagedPolicyName"] for each in properties(plain, "AWS::IAM::ManagedPolicy")} == {
        f"stepwell-main-{role}" for role in get_args(Role)
    }
    policies = properties(full, "AWS::IAM::ManagedPolicy")
    assert len(policies) == len(get_args(Role)) + 3
    for policy in policies:
        assert len(json.dumps(policy["PolicyDocument"])) < 12_000
    [worker] = [each for each in policies if each["ManagedPolicyName"].startswith("stepwell-blue-2-worker-shop")]
    [taking] = [each for each in worker["PolicyDocument"]["Statement"] if each["Sid"] == "TakeTasks"]
    assert taking["Condition"] == {"StringEquals": {"aws:ResourceTag/stepwell:namespace": "shop"}}
    assert "sqs:SendMessage" not in taking["Action"]


def test_who_takes_tasks_may_read_them(plain: Template, full: Template) -> None:
    """Task queues are encrypted with the account's own key, where the cell has one; without it every receive is
    refused."""
    for template, expected in ((plain, 0), (full, 1)):
        workers = [
            each for each in properties(template, "AWS::IAM::ManagedPolicy") if "-worker" in each["ManagedPolicyName"]
        ]
        assert workers
        for worker in workers:
            reading = [each for each in worker["PolicyDocument"]["Statement"] if each["Action"] == "kms:Decrypt"]
            assert len(reading) == expected
            for statement in reading:
                assert "Fn::GetAtt" in statement["Resource"], "the one key"
                assert "kms:ViaService" in statement["Condition"]["StringEquals"]


def test_policies_fit_into_what_iam_takes(full: Template) -> None:
    """6,144 characters without white space, references counted as what they become."""
    for policy in properties(full, "AWS::IAM::ManagedPolicy"):
        text = json.dumps(policy["PolicyDocument"], separators=(",", ":"))
        assert len(resolved(policy["PolicyDocument"])) < 6_144, text


def resolved(document: Any) -> str:
    def flat(value: Any) -> Any:
        if isinstance(value, dict) and "Fn::Join" in value:
            return "".join(each if isinstance(each, str) else "x" * 12 for each in value["Fn::Join"][1])
        if isinstance(value, dict):
            return {key: flat(each) for key, each in value.items()}
        return [flat(each) for each in value] if isinstance(value, list) else value

    return json.dumps(flat(document), separators=(",", ":"))


def test_alarms(plain: Template, full: Template) -> None:
    alarms = {each["AlarmName"]: each for each in properties(plain, "AWS::CloudWatch::Alarm")}
    kinds = ["backlog-age", "schedule-to-start", "timer-lag", "non-determinism", "stuck", "throttles-exec"]
    kinds += ["throttles-timer", "feed-failures", "feed-age", "timers-age", "tick-errors", "api-errors"]
    assert set(alarms) == {f"stepwell-main-{kind}" for kind in kinds}
    for alarm in alarms.values():
        assert alarm["AlarmActions"]
        assert alarm["AlarmDescription"]
        assert alarm["TreatMissingData"] == "notBreaching"
    assert len(alarms) <= 12, "each costs $0.10 a month, and an idle installation $2 at most"
    plain.resource_count_is("AWS::SNS::Subscription", 0)
    full.has_resource_properties("AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "on-call@example.com"})
    plain.resource_count_is("AWS::CloudWatch::Dashboard", 1)


def test_nothing_polls_and_nothing_is_provisioned(plain: Template) -> None:
    for kind in ("AWS::ECS::Service", "AWS::EC2::VPC", "AWS::EC2::NatGateway", "AWS::KMS::Key"):
        plain.resource_count_is(kind, 0)
    assert "ProvisionedConcurrencyConfig" not in json.dumps(plain.to_json())


def test_the_container_service(full: Template) -> None:
    full.has_resource_properties(
        "AWS::ECS::TaskDefinition",
        {
            "RuntimePlatform": {"CpuArchitecture": "ARM64", "OperatingSystemFamily": "LINUX"},
            "ContainerDefinitions": [
                Match.object_like(
                    {"Command": Match.array_with(["server", "--aws"]), "Image": "registry.example/stepwell:1"}
                )
            ],
        },
    )
    full.has_resource_properties("AWS::ElasticLoadBalancingV2::LoadBalancer", {"Scheme": "internal"})
    full.has_resource_properties("AWS::ElasticLoadBalancingV2::Listener", {"Protocol": "HTTPS", "Port": 443})
    full.resource_count_is("AWS::EC2::NatGateway", 0)


def test_two_cells_share_no_name(plain: Template, full: Template) -> None:
    def names(template: Template) -> set[str]:
        keys = ("TableName", "QueueName", "FunctionName", "ManagedPolicyName", "AlarmName", "LogGroupName", "Name")
        found = template.to_json()["Resources"].values()
        given = [each["Properties"].get(key) for each in found for key in keys if "Properties" in each]
        return {name for name in given if isinstance(name, str)}

    assert "stepwell-main-exec" in names(plain)
    assert names(plain) & names(full) - {"$default", "live"} == set()
