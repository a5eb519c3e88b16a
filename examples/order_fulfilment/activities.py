"""The steps that touch the world. Each may run more than once; its idempotency key makes the effect happen once."""

import os

from stepwell import activity
from stepwell.exceptions import ApplicationError

from .records import Order, Payment
from .shop import OutOfStock, Shop

SHOP_VARIABLE = "ORDER_SHOP"


def shop() -> Shop:
    """The shop's services, in the file that the environment variable ORDER_SHOP names."""
    return Shop(os.environ.get(SHOP_VARIABLE, "shop.db"))


@activity.defn
def capture_payment(order: Order) -> Payment:
    """Raises ConnectionError when the payment service is in trouble, which is tried again."""
    info = activity.info()
    activity.logger.info("asking the payment service for %.2f (attempt %d)", order.amount_cents / 100, info.attempt)
    payment = shop().charge(info.idempotency_key, order)
    activity.logger.info("payment service: charged as %s", payment.payment_id)
    return payment


@activity.defn
def refund_payment(payment: Payment) -> None:
    shop().refund(payment.payment_id)
    activity.logger.info("payment service: refunded %s", payment.payment_id)


@activity.defn
def reserve_stock(order: Order) -> None:
    """Raises a failure of type OutOfStock, which no retry can mend."""
    try:
        shop().reserve(activity.info().idempotency_key, order)
    except OutOfStock as error:
        activity.logger.info("warehouse: %s", error)
        raise ApplicationError(str(error), type="OutOfStock", non_retryable=True) from error
    activity.logger.info("warehouse: reserved %d x %s", order.quantity, order.item)


@activity.defn
def open_support_case(order: Order) -> str:
    """The number of the case."""
    case = shop().open_case(activity.info().idempotency_key, order.order_id, f"not shipped in {order.ship_within}")
    activity.logger.info("support desk: opened %s", case)
    return case
