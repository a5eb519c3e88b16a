"""The document says what the table says."""

import json
from typing import Any

from stepwell.api.codec import encode_json
from stepwell.api.operations import OPERATIONS

from stepwell_server.frontend.openapi import openapi_document

DOCUMENT: dict[str, Any] = json.loads(encode_json(openapi_document("1.2.3")))


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    if isinstance(value, list):
        return set().union(*map(_references, value))
    return set()


def test_it_lists_every_operation_once() -> None:
    listed = {path["post"]["operationId"]: template for template, path in DOCUMENT["paths"].items()}
    assert listed == {operation.name: operation.path for operation in OPERATIONS}
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"]["version"] == "1.2.3"


def test_every_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for reference in _references(DOCUMENT):
        assert reference.removeprefix("#/components/schemas/") in schemas


def test_every_path_parameter_is_described() -> None:
    for template, path in DOCUMENT["paths"].items():
        named = [parameter["name"] for parameter in path["post"].get("parameters", [])]
        assert named == [part[1:-1] for part in template.split("/") if part.startswith("{")]


def test_fields_have_their_types() -> None:
    start = DOCUMENT["components"]["schemas"]["StartWorkflowRequest"]
    assert start["required"] == ["workflow_id", "workflow_type", "task_queue"]
    assert start["properties"]["workflow_id"] == {"type": "string"}
    assert start["properties"]["workflow_run_timeout"]["anyOf"][0] == {"type": "string", "format": "duration"}
