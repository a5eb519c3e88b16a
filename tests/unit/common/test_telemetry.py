"""What CloudWatch reads: lines that are JSON of the right namespace, when they are written, logs without more than is
said, and the names that the stack's alarms use."""

import ast
import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepwell_server.common import metric_names as names
from stepwell_server.common import telemetry
from stepwell_server.common.metrics import Gathered
from stepwell_server.common.telemetry import EVERY_SECONDS, Telemetry, emf_lines, structured_logs

CONTEXT = SimpleNamespace(aws_request_id="request 1")
CDK = Path(__file__).parents[3] / "infra" / "cdk" / "observability.py"


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Told:
    def __init__(self) -> None:
        self.clock = Clock()
        self.lines: list[str] = []
        self.telemetry = Telemetry("blue", self.clock, self.lines.append)  # type: ignore[arg-type]
        self.metrics = self.telemetry.metrics


def test_lines_are_json_of_the_namespace_with_units_and_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "stepwell")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "another")
    gathered = Gathered()
    gathered.count(names.REQUESTS, operation="StartWorkflow", code="OK")
    gathered.count(names.STUCK)
    for number in range(150):
        gathered.record(names.SCHEDULE_TO_START, number)
    told = [json.loads(line) for line in emf_lines("blue", gathered.take())]
    seen: dict[str, list[float]] = {}
    for line in told:
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert directive["Namespace"] == names.NAMESPACE and line["_aws"]["Timestamp"] > 1.7e12
        (dimensions,) = directive["Dimensions"]
        for metric in directive["Metrics"]:
            name = metric["Name"]
            assert metric["Unit"] == names.UNITS[name]
            assert set(dimensions) == {names.CELL, *names.DIMENSIONS.get(name, ())}
            assert len(line[name]) <= 100
            seen.setdefault(name, []).extend(line[name])
        assert {name: line[name] for name in dimensions}["cell"] == "blue"
        allowed = {"_aws", *dimensions, *(metric["Name"] for metric in directive["Metrics"])}
        assert set(line) == allowed, "nothing else is billed"
    assert seen[names.REQUESTS] == [1.0] and seen[names.STUCK] == [1.0]
    assert seen[names.SCHEDULE_TO_START] == [float(number) for number in range(150)]


def test_units_are_cloudwatchs() -> None:
    from aws_lambda_powertools.metrics.provider.cloudwatch_emf.metric_properties import MetricUnit

    assert set(names.UNITS.values()) <= {unit.value for unit in MetricUnit}
    assert set(names.DIMENSIONS) <= set(names.UNITS) and set(names.UNITS) >= names.PRESSING


def test_a_function_tells_with_its_first_call_then_once_a_minute() -> None:
    told = Told()

    def handle(event: Any, context: Any) -> str:
        told.metrics.count(names.REQUESTS, operation="GetResult", code="OK")
        return "answer"

    call = told.telemetry.observed("frontend", handle)
    assert call({}, CONTEXT) == "answer" and len(told.lines) == 1
    told.clock.seconds = EVERY_SECONDS - 1
    for _ in range(5):
        call({}, CONTEXT)
    assert len(told.lines) == 1
    told.clock.seconds = EVERY_SECONDS
    call({}, CONTEXT)
    assert json.loads(told.lines[1])[names.REQUESTS] == [6.0]


def test_a_function_tells_at_once_of_what_should_not_wait_also_when_it_fails() -> None:
    told = Told()

    def handle(event: Any, context: Any) -> None:
        told.metrics.count(names.NON_DETERMINISM)
        raise ValueError("of the handler")

    call = told.telemetry.observed("frontend", handle)
    for expected in (1, 2):
        with pytest.raises(ValueError, match="of the handler"):
            call({}, CONTEXT)
        assert len(told.lines) == expected


def test_nothing_is_written_when_nothing_was_told() -> None:
    told = Told()
    told.telemetry.observed("feed", lambda event, context: None)({}, CONTEXT)
    told.telemetry.flush()
    assert told.lines == []


def test_lines_that_cannot_be_written_fail_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def broken(line: str) -> None:
        raise OSError("the pipe is closed")

    broken_telemetry = Telemetry("blue", Clock(), broken)  # type: ignore[arg-type]
    broken_telemetry.metrics.count(names.STUCK)
    assert broken_telemetry.observed("feed", lambda event, context: "answer")({}, CONTEXT) == "answer"
    assert "Metrics of a minute are lost" in caplog.text


async def test_a_container_tells_each_minute_and_when_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "EVERY_SECONDS", 0.01)
    told = Told()
    told.telemetry.start()
    told.metrics.count(names.FEED_FAILURES)
    async with asyncio.timeout(20):
        while not told.lines:
            await asyncio.sleep(0.01)
    monkeypatch.setattr(telemetry, "EVERY_SECONDS", 3_600)
    await asyncio.sleep(0.02)
    told.metrics.count(names.STUCK)
    await told.telemetry.stop()
    assert [name for line in told.lines for name in json.loads(line) if name in names.UNITS] == [
        names.FEED_FAILURES,
        names.STUCK,
    ]


@pytest.fixture
def restored_loggers() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("stepwell_server", "stepwell")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.usefixtures("restored_loggers")
def test_logs_are_json_with_the_call_and_only_from_warnings_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERTOOLS_LOG_LEVEL", raising=False)
    lines: list[str] = []
    structured_logs("blue", write=lines.append)
    told = Told()
    log = logging.getLogger("stepwell_server.history.feed")

    def handle(event: Any, context: Any) -> None:
        log.info("not worth its price")
        try:
            raise ValueError("why")
        except ValueError:
            log.warning("Record %s failed", 17, exc_info=True)

    told.telemetry.observed("feed", handle)({"secret": "payload"}, CONTEXT)
    (line,) = lines
    said = json.loads(line)
    assert said["level"] == "WARNING" and said["message"] == "Record 17 failed"
    assert said["function_request_id"] == "request 1" and said["cell"] == "blue"
    assert said["name"] == "stepwell_server.history.feed" and said["exception_name"] == "ValueError"
    assert "payload" not in line


_TRACED = """
import sys
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.telemetry import Telemetry

call = Telemetry("blue", SystemClock()).observed("feed", lambda event, context: "payload")
if sys.argv[1] == "on":
    from aws_xray_sdk.core import xray_recorder

    class Emitter:
        def send_entity(self, entity):
            print(entity.serialize())

    xray_recorder._emitter = Emitter()
call({}, None)
print("aws_lambda_powertools" in sys.modules, "aws_xray_sdk" in sys.modules)
"""


def _traced(value: str) -> list[str]:
    """What a call in Lambda's environment sends to X-Ray, and what it imported."""
    environment = {name: each for name, each in os.environ.items() if not name.startswith("POWERTOOLS_")}
    environment |= {"LAMBDA_TASK_ROOT": "/var/task", telemetry.TRACING: value}
    environment["_X_AMZN_TRACE_ID"] = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    arguments = [sys.executable, "-c", _TRACED, value]
    ended = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return ended.stdout.splitlines()


def test_a_segment_for_each_call_where_x_ray_is_on() -> None:
    segment, _ = _traced("on")
    said = json.loads(segment)
    assert said["name"] == "## feed" and said["annotations"] == {"cell": "blue"}
    assert said["trace_id"] == "1-5759e988-bd862e3fe1be46a994272793" and said["parent_id"] == "53995c3f42cd8ad8"
    assert "payload" not in segment


def test_tracing_is_off_by_default_and_then_not_even_imported() -> None:
    assert _traced("") == ["False False"]


def test_alarms_and_dashboard_use_the_names_that_are_reported() -> None:
    """The stack's own tests need Node; this reads what it asks CloudWatch for."""
    tree = ast.parse(CDK.read_text())
    asked = [
        call.args[0].attr
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "own"
        if isinstance(call.args[0], ast.Attribute)
    ]
    metrics = {getattr(names, attribute) for attribute in asked}
    assert metrics <= set(names.UNITS), "an alarm on what nobody reports never rings"
    assert not metrics & set(names.DIMENSIONS), "it asks with the dimension cell alone"
    assert metrics == set(names.UNITS) - set(names.DIMENSIONS), "what is reported so is shown"
    (own,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "own"]
    source = ast.unparse(own)
    assert "namespace=names.NAMESPACE" in source and "dimensions_map={names.CELL: self._cell.name}" in source
