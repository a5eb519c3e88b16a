"""The order as one plain function. It may be killed at any line and goes on there, on this machine or another."""

from datetime import timedelta

from stepwell import workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError

from .activities import capture_payment, open_support_case, refund_payment, reserve_stock
from .records import Order, OrderStatus, Outcome, Shipment

TASK_QUEUE = "orders"


@workflow.defn
async def fulfil_order(order: Order) -> Outcome:
    """Take the money, reserve the goods or give the money back, then wait for the carrier, for two weeks if need be."""
    payment = await workflow.execute_activity(
        capture_payment,
        order,
        start_to_close_timeout=timedelta(seconds=30),
        retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_attempts=10),
    )
    workflow.logger.info("paid: %s", payment.payment_id)
    try:
        await workflow.execute_activity(reserve_stock, order, start_to_close_timeout=timedelta(seconds=60))
    except ActivityError:
        workflow.logger.info("no stock, so the payment is refunded")
        await workflow.execute_activity(refund_payment, payment, start_to_close_timeout=timedelta(seconds=30))
        raise
    workflow.logger.info("stock reserved, waiting up to %s for the carrier's signal", order.ship_within)

    shipment = await workflow.wait_for_signal("shipped", result_type=Shipment, timeout=order.ship_within)
    if shipment is None:
        workflow.logger.info("not shipped in %s, so support takes over", order.ship_within)
        case = await workflow.execute_activity(open_support_case, order, start_to_close_timeout=timedelta(seconds=30))
        return Outcome(order.order_id, OrderStatus.WITH_SUPPORT, payment.payment_id, case)
    workflow.logger.info("shipped: %s", shipment.tracking_number)
    return Outcome(order.order_id, OrderStatus.SHIPPED, payment.payment_id, shipment.tracking_number)
