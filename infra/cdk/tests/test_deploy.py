"""The real ``cdk deploy`` onto an emulator that enforces IAM and TLS, and then calls through what it made.

Nothing of the template is different there but where the functions find AWS. What the functions themselves do is shown
once their entry points are in the package: until then a call that is let through ends with their import error.
"""

import itertools
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from stepwell.api import operations
from stepwell.api.common import WorkflowExecution
from stepwell.api.operations import Operation
from stepwell.api.requests import DescribeWorkflowRequest, GetSystemInfoRequest, StartWorkflowRequest

from functions import NEEDS
from stacks import INFRA
from tests.support.aws.ministack import REGION, ROOT_KEY, ROOT_SECRET, MiniStack

ACCOUNT = "000000000000"
GRANTS = [
    {"role": "starter", "namespace": "shop", "workflow_type": "fulfil_order", "id_prefix": "order-"},
    {"role": "sender", "namespace": "shop", "id_prefix": "order-"},
    {"role": "reader", "namespace": "shop", "id_prefix": "order-"},
    {"role": "worker", "namespace": "shop"},
]
ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(os.environ.get("LOCAL_PACKAGE", "nowhere"))


@dataclass
class Deployed:
    emulator: MiniStack
    api: str

    def client(self, service: str, key: tuple[str, str] = (ROOT_KEY, ROOT_SECRET)) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.emulator.url,
            region_name=REGION,
            aws_access_key_id=key[0],
            aws_secret_access_key=key[1],
            verify=str(self.emulator.certificate),
        )

    def call(
        self, operation: Operation[Any, Any], request: Any, key: tuple[str, str] | None, *, service: str = "execute-api"
    ) -> tuple[int, str]:
        """A call as the SDK makes it, signed with the key."""
        body = msgspec.json.encode(request)
        url = f"{self.emulator.url}/_aws/execute-api/{self.api}{operation.url_path(request)}"
        signed = AWSRequest("POST", url, data=body, headers={"content-type": "application/json"})
        if key is not None:
            SigV4Auth(Credentials(*key), service, REGION).add_auth(signed)
        return self.send(url, body, dict(signed.headers))

    def send(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        sent = urllib.request.Request(url, data=body, headers=headers, method="POST")
        context = ssl.create_default_context(cafile=str(self.emulator.certificate))
        try:
            with urllib.request.urlopen(sent, context=context, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("deploy")
    emulator = MiniStack(Path(os.environ["MINISTACK_PYTHON"]))
    try:
        cdk(emulator, folder, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
        outputs = folder / "outputs.json"
        cdk(
            emulator,
            INFRA,
            "deploy",
            "--require-approval=never",
            f"--outputs-file={outputs}",
            f"--output={folder / 'out'}",
            *settings(emulator),
        )
        url = json.loads(outputs.read_text())["stepwell-main"]["Url"]
        yield Deployed(emulator, url.removeprefix("https://").partition(".")[0])
    finally:
        emulator.stop()


def settings(emulator: MiniStack) -> list[str]:
    values = {"package": str(PACKAGE), "endpoint": emulator.url, "destroy": "true", "grants": json.dumps(GRANTS)}
    return [part for name, value in values.items() for part in ("-c", f"{name}={value}")]


def cdk(emulator: MiniStack, folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [os.environ["CDK"], *arguments],
        cwd=folder,
        env={**os.environ, **emulator.variables()},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    told = "\n".join((done.stdout[-6000:], done.stderr[-6000:], emulator.text()[-3000:]))
    assert done.returncode == 0, f"cdk {arguments[0]}:\n{told}"


@pytest.fixture(scope="module")
def user(deployed: Deployed) -> Callable[..., tuple[str, str]]:
    """A new user with some of the stack's policies: its key."""
    iam = deployed.client("iam")
    policies = {each["PolicyName"]: each["Arn"] for each in iam.list_policies(Scope="Local")["Policies"]}

    numbers = itertools.count(1)

    def make(*names: str) -> tuple[str, str]:
        name = f"user-{next(numbers)}"
        iam.create_user(UserName=name)
        for policy in names:
            [arn] = [arn for each, arn in policies.items() if each == policy or each.startswith(f"{policy}-")]
            iam.attach_user_policy(UserName=name, PolicyArn=arn)
        made = iam.create_access_key(UserName=name)["AccessKey"]
        return made["AccessKeyId"], made["SecretAccessKey"]

    return make


def describe(workflow_id: str, namespace: str = "shop") -> tuple[Operation[Any, Any], Any]:
    request = DescribeWorkflowRequest(namespace=namespace, execution=WorkflowExecution(workflow_id=workflow_id))
    return operations.DESCRIBE_WORKFLOW, request


def start(workflow_id: str, workflow_type: str = "fulfil_order") -> tuple[Operation[Any, Any], Any]:
    request = StartWorkflowRequest(
        namespace="shop",
        workflow_id=workflow_id,
        workflow_type=workflow_type,
        task_queue="orders",
        request_id=workflow_id,
    )
    return operations.START_WORKFLOW, request


def refused(answer: tuple[int, str]) -> bool:
    return answer[0] == 403


def served(answer: tuple[int, str]) -> bool:
    """The function answered, by a result or by a refusal of its own."""
    return answer[0] in (200, 404)


def test_everything_of_the_stack_is_there(deployed: Deployed) -> None:
    tables = deployed.client("dynamodb").list_tables()["TableNames"]
    assert set(tables) == {f"stepwell-main-{name}" for name in ("exec", "timer", "ctl", "vis")}
    queues = deployed.client("sqs").list_queues(QueueNamePrefix="stepwell-main")["QueueUrls"]
    assert {url.rpartition("/")[2] for url in queues} == {"stepwell-main-timers", "stepwell-main-feed-failures"}
    alarms = deployed.client("cloudwatch").describe_alarms(AlarmNamePrefix="stepwell-main")["MetricAlarms"]
    assert len(alarms) == 12
    mappings = deployed.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    assert {each["State"] for each in mappings} == {"Enabled"}
    assert len(mappings) == 2


def test_unsigned_calls_are_refused(deployed: Deployed) -> None:
    assert refused(deployed.call(operations.GET_SYSTEM_INFO, GetSystemInfoRequest(), None))
    assert refused(deployed.call(*start("order-1"), None))
    url = f"{deployed.emulator.url}/_aws/execute-api/{deployed.api}/api/v1/anything/else"
    assert refused(deployed.send(url, b"{}", {"content-type": "application/json"}))


def test_the_first_call_makes_the_key_of_tokens_encrypted(deployed: Deployed) -> None:
    assert served(deployed.call(*describe("order-1"), (ROOT_KEY, ROOT_SECRET)))
    name = "/stepwell/main/token-key"
    found = deployed.client("ssm").get_parameter(Name=name, WithDecryption=True)["Parameter"]
    assert (found["Type"], found["Version"], len(found["Value"])) == ("SecureString", 1, 64)
    assert deployed.client("secretsmanager").list_secrets()["SecretList"] == []


def test_forged_and_foreign_signatures_are_refused(deployed: Deployed, user: Callable[..., tuple[str, str]]) -> None:
    key = user("stepwell-main-operator")
    assert served(deployed.call(*describe("order-1"), key))
    assert refused(deployed.call(*describe("order-1"), (key[0], "x" * 40)))
    assert refused(deployed.call(*describe("order-1"), ("AKIA" + "0" * 16, key[1])))


def test_a_user_without_a_policy_is_refused(deployed: Deployed, user: Callable[..., tuple[str, str]]) -> None:
    assert refused(deployed.call(*describe("order-1"), user()))


def test_reader_below_a_prefix(deployed: Deployed, user: Callable[..., tuple[str, str]]) -> None:
    key = user("stepwell-main-reader-shop-order")
    assert served(deployed.call(*describe("order-1"), key))
    assert refused(deployed.call(*describe("invoice-1"), key))
    assert refused(deployed.call(*describe("order-1", namespace="other"), key))
    assert refused(deployed.call(*describe("x/workflows/order-1"), key))
    assert refused(deployed.call(*start("order-1"), key))


def test_starter_of_one_type(deployed: Deployed, user: Callable[..., tuple[str, str]]) -> None:
    key = user("stepwell-main-starter-shop-fulfil_order")
    assert served(deployed.call(*start("order-1"), key))
    assert refused(deployed.call(*start("order-1", "refund"), key))
    assert refused(deployed.call(*start("invoice-1"), key))
    assert refused(deployed.call(*start("workflow-types/fulfil_order/workflows/order-1", "refund"), key))
    assert refused(deployed.call(*describe("order-1"), key))


def test_an_id_with_a_slash_reaches_the_function(deployed: Deployed) -> None:
    assert served(deployed.call(*describe("orders/2026/1"), (ROOT_KEY, ROOT_SECRET)))


def test_a_worker_reaches_its_own_queues_only(deployed: Deployed, user: Callable[..., tuple[str, str]]) -> None:
    """Through SQS itself: the timer queue and another installation's task queues are none of its business."""
    key = user("stepwell-main-worker-shop")
    sqs = deployed.client("sqs")
    own = sqs.create_queue(QueueName=f"stepwell-main-{'0' * 16}-wft-0", tags={"stepwell:namespace": "shop"})["QueueUrl"]
    foreign = sqs.create_queue(QueueName=f"stepwell-other-{'0' * 16}-wft-0")["QueueUrl"]
    timers = sqs.get_queue_url(QueueName="stepwell-main-timers")["QueueUrl"]
    sqs.send_message(QueueUrl=own, MessageBody="{}")
    worker = deployed.client("sqs", key)
    [message] = worker.receive_message(QueueUrl=own, WaitTimeSeconds=5)["Messages"]
    worker.delete_message(QueueUrl=own, ReceiptHandle=message["ReceiptHandle"])
    for url, ask in ((foreign, worker.receive_message), (timers, worker.receive_message), (own, worker.purge_queue)):
        with pytest.raises(worker.exceptions.ClientError, match="AccessDenied"):
            ask(QueueUrl=url)


@pytest.mark.parametrize("function", sorted(NEEDS))
def test_a_functions_role_suffices_for_the_calls_of_its_adapters(deployed: Deployed, function: str) -> None:
    """The role's own policy, given to a user, whose key the adapters then have."""
    iam = deployed.client("iam")
    configuration = deployed.client("lambda").get_function_configuration(FunctionName=f"stepwell-main-{function}")
    role = configuration["Role"].rpartition("/")[2]
    name = f"as-{function}"
    iam.create_user(UserName=name)
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        iam.put_user_policy(UserName=name, PolicyName=policy, PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    access = deployed.emulator.variables(key["AccessKeyId"], key["SecretAccessKey"])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("role_probe.py")), function],
        env={
            **os.environ,
            **configuration["Environment"]["Variables"],
            **access,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "sdk"))),
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]


def test_the_schedule_runs_the_tick_which_leases_its_partitions(deployed: Deployed) -> None:
    """With the tick's own role, within two minutes of the deployment."""
    dynamodb = deployed.client("dynamodb")
    deadline = time.monotonic() + 240
    while True:
        items = dynamodb.scan(TableName="stepwell-main-ctl", ProjectionExpression="pk, o")["Items"]
        if any(each["pk"]["S"].startswith("LEASE#timer#") and each["o"]["S"] != "probe" for each in items):
            return
        assert time.monotonic() < deadline, deployed.emulator.text()[-4000:]
        time.sleep(1)


def test_an_order_by_api_stream_queue_and_worker(
    deployed: Deployed, user: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    """The caller may start, signal and read its own orders, the worker may work; neither may do what the other does.
    The worker is killed when the order waits, so that another one has to replay it, which takes reading its history."""
    url = f"{deployed.emulator.url}/_aws/execute-api/{deployed.api}"
    caller = user(*[f"stepwell-main-{role}-shop" for role in ("starter", "sender", "reader")])
    worker = user("stepwell-main-worker-shop")
    # The emulator unpacks the package for each process of a function, which takes longer than a client waits.
    with ThreadPoolExecutor(4) as together:
        ask = [
            together.submit(deployed.call, operations.GET_SYSTEM_INFO, GetSystemInfoRequest(), worker) for _ in range(4)
        ]
    assert {each.result()[0] for each in ask} == {200}

    def program(role: str, key: tuple[str, str]) -> dict[str, Any]:
        path = os.pathsep.join(str(ROOT / each) for each in ("", "sdk", "examples"))
        environment = {**os.environ, **deployed.emulator.variables(*key), "PYTHONPATH": path}
        script = Path(__file__).with_name("order.py")
        return {"args": [sys.executable, str(script), role, url], "env": environment, "cwd": tmp_path}

    def with_a_new_worker(role: str) -> str:
        with (tmp_path / "worker.log").open("wb") as log:
            working = subprocess.Popen(**program("worker", worker), stdout=log, stderr=subprocess.STDOUT)
            try:
                done = subprocess.run(**program(role, caller), capture_output=True, text=True, timeout=300, check=False)
            except subprocess.TimeoutExpired as late:
                told = (tmp_path / "worker.log").read_text()[-3000:], deployed.emulator.text()[-6000:]
                raise AssertionError("\n".join((str(late.stdout), str(late.stderr), *told))) from None
            finally:
                working.kill()
                working.wait()
        told = "\n".join((done.stderr[-4000:], (tmp_path / "worker.log").read_text()[-4000:]))
        assert done.returncode == 0, told + deployed.emulator.text()[-4000:]
        return done.stdout.strip()

    assert with_a_new_worker("starter") == ""
    assert with_a_new_worker("carrier") == "order-17: shipped, TRACK-1"
