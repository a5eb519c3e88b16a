"""The function behind an HTTP API: what API Gateway makes of requests, and what it is answered."""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from aws_lambda_powertools.event_handler.api_gateway import ApiGatewayResolver, BaseRouter
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.limits import MAX_REQUEST_BYTES

from stepwell_server.common.metrics import Gathered
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.lambda_handler import api_handler, with_encoded_path
from tests.support.http_events import event_of, http_event


@pytest.fixture
def call() -> Iterator[Any]:
    with asyncio.Runner() as runner:
        hosted = runner.run(HostedEngine.start(":memory:"))
        handler = api_handler(hosted.engine, runner.run)

        def call(event: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            answer = handler(event, None)
            return answer["statusCode"], json.loads(answer["body"])

        yield call
        runner.run(hosted.stop())


START = r.StartWorkflowRequest(workflow_id="a/b #?%2F ü", workflow_type="Order v1", task_queue="orders")


def test_ids_of_any_text_come_through_though_the_gateway_decodes_them(call: Any) -> None:
    assert call(http_event(o.START_WORKFLOW, START))[0] == 200
    describe = r.DescribeWorkflowRequest(execution=WorkflowExecution(workflow_id=START.workflow_id))
    status, body = call(http_event(o.DESCRIBE_WORKFLOW, describe))
    assert status == 200 and body["info"]["execution"]["workflow_id"] == START.workflow_id


def test_a_route_for_everything_is_told_by_its_path(call: Any) -> None:
    body = json.dumps({})
    assert call(event_of("/api/v1/system-info", body))[0] == 200
    assert call(event_of("/api/v1/system-info", body, route_key="POST /{proxy+}", parameters={"proxy": "x"}))[0] == 200


def test_an_id_with_a_slash_comes_by_the_route_for_everything(call: Any) -> None:
    event = http_event(o.START_WORKFLOW, START)
    decoded = event["rawPath"]
    assert call(event_of(decoded, event["body"], route_key="POST /api/v1/{proxy+}"))[0] == 200
    other = event["body"].replace("a/b", "a/c")
    assert call(event_of(decoded, other, route_key="POST /api/v1/{proxy+}"))[0] == 404


def test_a_call_that_comes_meanwhile_is_not_answered_in_its_place(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver keeps the newest event for all calls of a process; in another thread there may be a newer one."""
    assert call(http_event(o.START_WORKFLOW, START))[0] == 200
    newer = APIGatewayProxyEventV2(http_event(o.GET_SYSTEM_INFO, r.GetSystemInfoRequest()))
    resolve = ApiGatewayResolver._resolve

    def resolve_late(app: ApiGatewayResolver) -> Any:
        monkeypatch.setattr(BaseRouter, "current_event", newer)
        return resolve(app)

    monkeypatch.setattr(ApiGatewayResolver, "_resolve", resolve_late)
    describe = r.DescribeWorkflowRequest(execution=WorkflowExecution(workflow_id=START.workflow_id))
    assert "info" in call(http_event(o.DESCRIBE_WORKFLOW, describe))[1]


@pytest.mark.parametrize("name", ["namespace", "workflow_type", "task_queue"])
def test_names_that_policies_go_by_have_no_slash(call: Any, name: str) -> None:
    """IAM's wildcards match slashes, and the gateway decodes paths."""
    status, body = call(http_event(o.START_WORKFLOW, msgspec.structs.replace(START, **{name: "a/b"})))
    assert status == 400 and body["details"]["field"] == name and "slash" in body["message"]


def test_an_event_says_whose_signature_the_gateway_has_verified(call: Any) -> None:
    """And not what the body says."""
    arn = "arn:aws:sts::123456789012:assumed-role/shop/i-1"
    event = http_event(o.START_WORKFLOW, START)
    event["requestContext"]["authorizer"] = {"iam": {"userArn": arn, "accessKey": "AKIA"}}
    event["body"] = json.dumps(json.loads(event["body"]) | {"principal": "arn:forged"})
    assert call(event)[0] == 200
    terminate = r.TerminateWorkflowRequest(execution=WorkflowExecution(workflow_id=START.workflow_id))
    assert call(http_event(o.TERMINATE_WORKFLOW, terminate))[0] == 200
    read = r.GetHistoryRequest(execution=WorkflowExecution(workflow_id=START.workflow_id))
    events = call(http_event(o.GET_HISTORY, read))[1]["events"]
    assert [each["attributes"].get("principal") for each in (events[0], events[-1])] == [arn, None]


def test_a_stage_in_the_path_is_not_part_of_it() -> None:
    event = event_of("/prod/api/v1/system-info", "{}", route_key="POST /api/v1/system-info")
    event["requestContext"]["stage"] = "prod"
    assert with_encoded_path(event)["rawPath"] == "/api/v1/system-info"


def test_bodies_may_be_base64(call: Any) -> None:
    body = base64.b64encode(b"{}").decode()
    assert call(event_of("/api/v1/system-info", body, is_base64=True))[0] == 200
    status, refused = call(event_of("/api/v1/system-info", "{}", is_base64=True))
    assert (status, refused["code"]) == (400, "INVALID_ARGUMENT")


def test_the_body_must_say_what_the_path_says(call: Any) -> None:
    """Access is granted by path."""
    event = http_event(o.START_WORKFLOW, START)
    event["pathParameters"]["namespace"] = "billing"
    status, body = call(event)
    assert status == 400 and "namespace is 'billing' in the path and 'default' in the body" in body["message"]


@pytest.mark.parametrize(
    ("event", "status", "says"),
    [
        (event_of("/api/v1/nothing", "{}"), 404, "no operation has the path"),
        (event_of("/api/v1/system-info", "{}", method="GET"), 404, "no operation has the path"),
        (event_of("/api/v1/system-info", "{}", headers={}), 415, "send JSON"),
        (event_of("/api/v1/system-info", "{}", headers={"Content-Type": "text/plain"}), 415, "'text/plain'"),
        (event_of("/api/v1/system-info", "{"), 400, "not JSON"),
        (event_of("/api/v1/system-info", "[]"), 400, "no GetSystemInfo request"),
        (event_of("/api/v1/system-info", " " * (MAX_REQUEST_BYTES + 1)), 413, "above the limit"),
    ],
)
def test_what_is_no_request_is_refused_by_name(call: Any, event: dict[str, Any], status: int, says: str) -> None:
    answer = call(event)
    assert answer[0] == status and says in answer[1]["message"]


def test_calls_are_counted_by_operation_and_code_and_ids_are_not_told() -> None:
    metrics = Gathered()
    with asyncio.Runner() as runner:
        hosted = runner.run(HostedEngine.start(":memory:"))
        handler = api_handler(hosted.engine, runner.run, metrics)
        describe = r.DescribeWorkflowRequest(execution=WorkflowExecution(workflow_id=START.workflow_id))
        for operation, request in (
            (o.DESCRIBE_WORKFLOW, describe),
            (o.START_WORKFLOW, START),
            (o.START_WORKFLOW, START),
        ):
            handler(http_event(operation, request), None)
        handler(event_of("/api/v1/no-such-path", "{}"), None)
        runner.run(hosted.stop())
    counts = {tuple(series.dimensions.items()): series.values for series in metrics.take()}
    assert counts == {
        (("operation", "DescribeWorkflow"), ("code", "NOT_FOUND")): (1.0,),
        (("operation", "StartWorkflow"), ("code", "OK")): (1.0,),
        (("operation", "StartWorkflow"), ("code", "WORKFLOW_EXECUTION_ALREADY_STARTED")): (1.0,),
    }
