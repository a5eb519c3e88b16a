"""Order fulfilment: payment, stock, shipping, and what to do when one of them fails."""
