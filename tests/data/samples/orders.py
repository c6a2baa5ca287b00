"""Orders of a small shop: what a cart costs and what is still in stock."""

from orders_types import Line, Order

SHIPPING_CENTS = 490


def total_cents(lines: list[Line]) -> int:
    """The price of all lines together, in cents."""
    


def is_free_of_shipping(order: Order) -> bool:
    """Whether the order costs 50.00 or more."""
    return total_cents(order.lines) >= 5000


def grand_total_cents(order: Order) -> int:
    """What the customer pays, shipping included."""
    total = total_cents(order.lines)
    if not is_free_of_shipping(order):
        total += SHIPPING_CENTS
    return total


def missing(order: Order, stock: dict[str, int]) -> list[str]:
    """Names of the articles that the stock cannot serve."""
    return [line.article for line in order.lines if stock.get(line.article, 0) < line.quantity]
