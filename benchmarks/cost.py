"""What runs cost on AWS: ``docs/cost.md``, from counted requests and list prices.

    python benchmarks/cost.py            writes the page from counted.json
    python benchmarks/cost.py --count    counts again first, on the tests' emulator (a few minutes)

Counts come from the requests that the product makes (units by the size of items); no emulator's own figures are used.
The tests count again as well, and compare.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from benchmarks import cost_model as model
from benchmarks.cost_page import page

PAGE = ROOT / "docs" / "cost.md"
ACTIVITIES = (1, 3, 10)


def count() -> dict[str, Any]:
    from tests.support.aws.cells import Provisioning
    from tests.support.aws.metered_table import operations, runs
    from tests.support.aws.moto_server import moto_server

    found: dict[str, Any] = {}
    with moto_server() as environment:
        os.environ.update(environment)
        provisioning = Provisioning(environment)
        for place in model.PLACES:
            counts = asyncio.run(runs(provisioning.cell(), place, ACTIVITIES))
            counts |= asyncio.run(operations(provisioning.cell, place))
            found[place] = {name: each._asdict() for name, each in counts.items()}
        provisioning.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="count again, on an emulator")
    if parser.parse_args().count:
        model.COUNTED.write_text(json.dumps(count(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
