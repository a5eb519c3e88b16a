"""The app and its templates, made in this process."""

import json
from pathlib import Path
from typing import Any

import aws_cdk
from aws_cdk.assertions import Template

import app
import cell

INFRA = Path(app.__file__).parent
EVERYTHING = {
    "cell": "blue-2",
    "region": "eu-west-1",
    "customer_key": "true",
    "snap_start": "true",
    "access_log": "true",
    "tracing": "true",
    "destroy": "true",
    "offload_kb": "16",
    "alarm_email": "on-call@example.com",
    "grants": [
        {"role": "starter", "namespace": "shop", "workflow_type": "fulfil_order", "id_prefix": "order-"},
        {"role": "reader", "namespace": "shop", "id_prefix": "order-"},
        {"role": "worker", "namespace": "shop"},
    ],
    "timer_partitions": "16",
    "callback_addresses": "https://hooks.example.com,https://*.example.org",
    "token_secret": "true",
    "second_visibility": "vis2",
    "visibility_reads": "second",
    "visibility_shadow_percent": "5",
    "service": "true",
    "service_image": "registry.example/stepwell:1",
    "service_certificate_arn": "arn:aws:acm:eu-west-1:123456789012:certificate/name",
}


def made(folder: Path, context: dict[str, Any]) -> tuple[aws_cdk.App, Any]:
    """The app with its stack, checked by cdk-nag when it is synthesized. The package is a stand-in: its content is
    not what is asserted here."""
    package = folder / "package"
    package.mkdir()
    (package / "code.py").write_text("")
    settings = json.loads((INFRA / "cdk.json").read_text())["context"]
    made_app = aws_cdk.App(outdir=str(folder / "out"), context=settings)
    return made_app, app.build(made_app, cell.read({"package": str(package), **context}))


def synthesized(folder: Path, context: dict[str, Any]) -> Template:
    made_app, stack = made(folder, context)
    made_app.synth()
    return Template.from_stack(stack)
