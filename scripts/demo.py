"""Sets up (once) and runs the main job: an order through payment, stock and shipping, on the embedded engine.

With --kill the process is killed in the middle of the order and started again. All options are those of
examples/order_fulfilment/demo.py (--help lists them).
"""

import sys

import environment

if __name__ == "__main__":
    arguments = ["-m", "order_fulfilment.demo", *sys.argv[1:]]
    sys.exit(environment.main(["runtime"], arguments, python_path=environment.ROOT / "examples"))
