"""What travels between the order's workflow, its activities and its callers; kept in the history as JSON."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


@dataclass(frozen=True)
class Order:
    """An order as it comes in. Amounts are in cents."""

    order_id: str
    item: str
    quantity: int
    amount_cents: int
    ship_within: timedelta = timedelta(days=14)
    """How long to wait for the carrier before the support desk is asked to look."""


@dataclass(frozen=True)
class Payment:
    payment_id: str
    order_id: str
    amount_cents: int


@dataclass(frozen=True)
class Shipment:
    """What the carrier reports with the signal ``shipped``."""

    tracking_number: str


class OrderStatus(StrEnum):
    SHIPPED = "shipped"
    WITH_SUPPORT = "with support"


@dataclass(frozen=True)
class Outcome:
    """How an order ended: with a tracking number, or with the number of a support case."""

    order_id: str
    status: OrderStatus
    payment_id: str
    reference: str
