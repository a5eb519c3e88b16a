"""``stepwell aws bootstrap`` against the emulator: what it makes serves, and every trouble is a sentence."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints import aws_bootstrap
from tests.support.aws.cells import Cell, Provisioning
from tests.support.sample_commits import SampleRun


async def test_what_it_makes_serves(
    cell: Cell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = cell.environment["AWS_ENDPOINT_URL"]
    name = f"b{cell.names.cell[1:]}"
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    for _ in range(2):
        assert aws_bootstrap.main(["bootstrap", "--cell", name, "--endpoint-url", endpoint]) == 0
    said = capsys.readouterr().out
    assert f"STEPWELL_CELL={name}" in said and f"AWS_ENDPOINT_URL={endpoint}" in said
    (bucket,) = {line.partition("=")[2] for line in said.splitlines() if "STEPWELL_BUCKET=" in line}
    assert bucket.startswith(f"stepwell-{name}-") and bucket.endswith("-us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    settings = AwsSettings.from_environment({"STEPWELL_CELL": name, "STEPWELL_BUCKET": bucket})
    backends = [await aws_backend(settings) for _ in range(2)]
    assert backends[0].token_key == backends[1].token_key and len(backends[0].token_key) == 32
    start = next(SampleRun(1).commits())
    await backends[0].log.append(start)
    assert await backends[1].log.head(start.key) == start
    for backend in backends:
        await backend.close()


def test_a_cell_that_is_no_name_is_a_mistake_in_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        aws_bootstrap.main(["bootstrap", "--cell", "Not A Cell"])
    assert ended.value.code == 2
    assert "1 to 16 of a-z" in capsys.readouterr().err


def test_no_region_is_said(cell: Cell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(SystemExit) as ended:
        aws_bootstrap.main(["bootstrap"])
    assert ended.value.code == 2
    assert "--region" in capsys.readouterr().err


def test_nobody_listening_is_said(
    cell: Cell, capsys: pytest.CaptureFixture[str], unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    url = f"http://127.0.0.1:{unused_tcp_port}"
    assert aws_bootstrap.main(["bootstrap", "--endpoint-url", url]) == 4
    assert url in capsys.readouterr().err


def test_a_refusal_names_the_call(cell: Cell, capsys: pytest.CaptureFixture[str], provisioning: Provisioning) -> None:
    bad_bucket = "No_Such_Name!"
    assert aws_bootstrap.main(["bootstrap", "--cell", cell.names.cell, "--bucket", bad_bucket]) in (3, 4)
    said = capsys.readouterr().err
    assert "Error:" in said and "ucket" in said


def test_the_command_line_finds_it() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, function = project["project"]["entry-points"]["stepwell.aws"]["default"].partition(":")
    assert getattr(import_module(module), function) is aws_bootstrap.main
    assert Names().cell == "main"


def test_a_task_queue_is_told_how_long_its_function_may_take(
    shared_cell: Cell, provisioning: Provisioning, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["task-queue", "trials", "--cell", shared_cell.names.cell, "--visibility"]
    assert aws_bootstrap.main([*told, "900"]) == 0
    said = capsys.readouterr().out
    names = [shared_cell.names.task_queue("default", "trials", kind) for kind in ("wft", "act")]
    assert all(name in said for name in names)
    for name in names:
        url = provisioning.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        attributes = provisioning.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        assert attributes["Attributes"]["VisibilityTimeout"] == "900"
    with pytest.raises(SystemExit):
        aws_bootstrap.main([*told, "59"])
    assert "60 to 43200" in capsys.readouterr().err


def test_a_task_queue_of_no_cell_is_one_sentence(shared_cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    assert aws_bootstrap.main(["task-queue", "q", "--cell", "nowhere", "--visibility", "60"]) == 3
    assert "nowhere-ctl" in capsys.readouterr().err
