"""List prices of AWS (us-east-1) and of what Stepwell is compared with: numbers, where they are from, when they were
read there. Free tiers and discounts are left out unless a name says otherwise.
"""

from typing import NamedTuple


class Price(NamedTuple):
    dollars: float
    of: str
    source: str
    read: str


_DYNAMODB = "aws.amazon.com/dynamodb/pricing"
_LAMBDA = "aws.amazon.com/lambda/pricing, by api-evangelist"
_FARGATE = "public notes of the Fargate price list"
_FUNCTIONS = "wring.co/blog/aws-step-functions-pricing-guide"
_TEMPORAL = "temporalio/documentation, docs/evaluate/temporal-cloud/pricing.mdx"

PRICES: dict[str, Price] = {
    "write": Price(0.625, "million write units, on demand", _DYNAMODB + "/on-demand", "2025-07"),
    "read": Price(0.125, "million read units, on demand", _DYNAMODB + "/on-demand", "2025-07"),
    "wcu-hour": Price(0.00065, "write unit a second, provisioned, and hour", _DYNAMODB + "/provisioned", "2026-03"),
    "rcu-hour": Price(0.00013, "read unit a second, provisioned, and hour", _DYNAMODB + "/provisioned", "2026-03"),
    "table": Price(0.25, "GB of a table and month", _DYNAMODB, "2026-03"),
    "streams": Price(0.20, "million reads of a stream (functions read free)", _DYNAMODB, "2026"),
    "sqs": Price(0.40, "million requests of 64 KB", "cloudburn.io/blog/amazon-sqs-pricing", "2026-03-14"),
    "http-api": Price(1.00, "million requests", "aws.amazon.com/api-gateway/pricing, by api-evangelist", "2026-09-20"),
    "call": Price(0.20, "million calls of functions", _LAMBDA, "2026-09-20"),
    "gb-second": Price(0.0000133334, "GB and second of a function on Arm", _LAMBDA, "2026-09-20"),
    "vcpu-hour": Price(0.04048, "vCPU and hour", _FARGATE, "2026"),
    "gb-hour": Price(0.004445, "GB of memory and hour", _FARGATE, "2026"),
    "alarm": Price(0.10, "metric of an alarm and month", "aws.amazon.com/cloudwatch/pricing", "2026"),
    "secret": Price(0.40, "secret and month", "aws.amazon.com/secrets-manager/pricing", "2026"),
    "transition": Price(25.0, "million transitions of Step Functions Standard", _FUNCTIONS, "2026-03-14"),
    "durable-operation": Price(8.0, "million operations of Lambda durable functions", _LAMBDA, "2026-09-20"),
    "durable-gb": Price(0.25, "GB written by Lambda durable functions", _LAMBDA, "2026-09-20"),
    "action": Price(50.0, "million actions of Temporal Cloud, first price step", _TEMPORAL, "2026"),
}


class Assumed(NamedTuple):
    """What no count tells."""

    value: float
    of: str


ASSUMED: dict[str, Assumed] = {
    "api ms": Assumed(20, "milliseconds that a call of the function behind the API takes"),
    "api GB": Assumed(1.0, "its memory, as the stack has it"),
    "event ms": Assumed(20, "milliseconds that a call of feed or timers takes"),
    "event GB": Assumed(0.5, "their memory, as the stack has it"),
    "tick ms": Assumed(200, "milliseconds that a minute's tick takes"),
    "tick GB": Assumed(0.25, "its memory, as the stack has it"),
    "requests per vCPU": Assumed(150, "requests per second that a vCPU of a container answers (with 2 GB)"),
    "retention days": Assumed(7, "days for which a closed run is kept"),
    "poll loops": Assumed(5, "loops of receive calls of 20 s, by which the platform reads a queue for a function"),
}
MONTH_HOURS = 730.0
