"""The CDK app: ``cdk deploy -c cell=main``. Every finding of cdk-nag fails it, unless suppressions.py says why not."""

import os
import sys

import aws_cdk
from cdk_nag import AwsSolutionsChecks

import cell
import suppressions
from stack import StepwellStack


def build(app: aws_cdk.App, settings: cell.Cell) -> StepwellStack:
    """The stack of one cell, with the rules that it is checked by."""
    stack = StepwellStack(app, settings)
    suppressions.add_to(stack)
    aws_cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return stack


def main() -> int:
    app = aws_cdk.App()
    context = {name: app.node.try_get_context(name) for name in CONTEXT}
    context["region"] = context["region"] or os.environ.get("CDK_DEFAULT_REGION")
    try:
        build(app, cell.read(context))
    except cell.BadSetting as error:
        print(f"Cannot deploy this: {error}", file=sys.stderr)
        return 2
    app.synth()
    return 0


CONTEXT = (
    "cell",
    "package",
    "customer_key",
    "destroy",
    "snap_start",
    "access_log",
    "tracing",
    "log_days",
    "offload_kb",
    "alarm_email",
    "region",
    "endpoint",
    "grants",
    "timer_partitions",
    "callback_addresses",
    "token_secret",
    "service",
    "service_image",
    "service_certificate_arn",
    "service_count",
)

if __name__ == "__main__":
    sys.exit(main())
