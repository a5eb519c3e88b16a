"""The OpenAPI 3.1 document, made from ROUTES and the wire records, so that it cannot say anything else than they do."""

import inspect
import re
from typing import Any

import msgspec
from stepwell.api.errors import ERRORS, ErrorBody
from stepwell.api.operations import Operation

from .routes import ROUTES

_REF = "#/components/schemas/{name}"
_PARAMETERS = {
    "namespace": "Namespace of the workflow; as in the body.",
    "workflow_id": "Workflow id, percent-encoded as one segment; as in the body.",
    "workflow_type": "Workflow type, percent-encoded as one segment; as in the body.",
    "schedule_id": "Schedule id, percent-encoded as one segment; as in the body.",
    "activity_id": "Id of a stand-alone activity, percent-encoded as one segment; as in the body.",
    "task_queue": "Task queue, percent-encoded as one segment; as in the body.",
}


def openapi_document(version: str) -> dict[str, Any]:
    """A JSON-ready document of the whole API."""
    operations = [route.operation for route in ROUTES]
    types: list[Any] = [ErrorBody]
    for operation in operations:
        types += [operation.request_type, operation.response_type]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    references = {of: schema for of, schema in zip(types, schemas, strict=True)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stepwell",
            "version": version,
            "summary": "Durable workflows: start, signal, query and watch them; poll and answer their tasks.",
            "description": "All operations are POST with a JSON body. Times are RFC 3339 in UTC, durations ISO 8601, "
            "bytes base64. Fields at their default may be left out. An answer that is not a success is an ErrorBody.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {operation.path: {"post": _operation(operation, references)} for operation in operations},
        "components": {"schemas": components},
    }


def _operation(operation: Operation[Any, Any], references: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "requestBody": {"required": True, "content": _json(references[operation.request_type])},
        "responses": {
            "200": {"description": "Done.", "content": _json(references[operation.response_type])},
            "default": {"description": _error_codes(), "content": _json(references[ErrorBody])},
        },
        "x-stepwell-long-poll": operation.long_poll,
        "x-stepwell-idempotent": operation.idempotent,
    }
    words = _own_docstring(operation.request_type)
    if words:
        described["description"] = words
    names = re.findall(r"{(\w+)}", operation.path)
    if names:
        described["parameters"] = [_parameter(name) for name in names]
    return described


def _parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PARAMETERS[name],
        "schema": {"type": "string", "minLength": 1},
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _error_codes() -> str:
    codes = ", ".join(f"{error.code} ({error.http_status})" for error in ERRORS)
    return f"Refused; `code` is one of {codes}."


def _own_docstring(of: type) -> str:
    return inspect.cleandoc(of.__doc__) if of.__doc__ and "__doc__" in vars(of) else ""
