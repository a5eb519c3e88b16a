"""Any number of seeds: ``python -m tests.simulation --seeds N --start S``. Exit code 1 when one found something."""

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.simulation.same_result import compare
from tests.simulation.world import World, simulate, with_settings

MOST_FINDINGS = 20
"""So many seeds with findings say the same thing."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds (default: 300)")
    parser.add_argument("--start", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--keep-going", action="store_true", help="go on after a seed that found something")
    parser.add_argument("--verbose", action="store_true", help="a line for each seed")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a part of the scenario not left as drawn"
    )
    parser.add_argument("--aws", action="store_true", help="on the emulated services of AWS")
    parser.add_argument("--containers", action="store_true", help="with --aws: in containers, not functions alone")
    parser.add_argument("--compare", action="store_true", help="compare each seed's results with those without faults")
    options = parser.parse_args()
    if options.aws and options.compare:
        parser.error("--compare is of the embedded engine")
    adjust = with_settings(options.set)
    world = _aws(options.containers) if options.aws else World
    began = time.perf_counter()
    faults: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    commits = failed = done = 0
    compared: Counter[str] = Counter()
    for seed in range(options.start, options.start + options.seeds):
        started = time.perf_counter()
        try:
            outcome = simulate(seed, adjust, world) if not options.compare else compare(seed, adjust, compared)
        except Exception:
            failed += 1
            sys.stdout.write(f"seed {seed} found something:\n{traceback.format_exc()}\n")
            sys.stdout.flush()
            if not options.keep_going or failed == MOST_FINDINGS:
                break
            continue
        done += 1
        commits += outcome.commits
        faults.update(outcome.faults)
        seen.update(outcome.seen)
        if options.verbose:
            seconds = time.perf_counter() - started
            sys.stdout.write(
                f"seed {seed}: {seconds:.3f} s, {outcome.commits} commits, {outcome.steps} steps, "
                f"{outcome.virtual_seconds:.0f} virtual s, digest {outcome.digest:016x}\n"
            )
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{done} seeds passed, {failed} failed, {commits} commits in {seconds:.1f} s\n")
    sys.stdout.write(f"faults: {', '.join(f'{name} {count}' for name, count in sorted(faults.items()))}\n")
    sys.stdout.write(f"seen: {', '.join(f'{name} {count}' for name, count in sorted(seen.items()))}\n")
    if options.compare:
        sys.stdout.write(f"compared: {', '.join(f'{name} {count}' for name, count in sorted(compared.items()))}\n")
    return 1 if failed else 0


def _aws(in_containers: bool) -> type[World]:
    """Imported where it is wanted, since boto takes its time."""
    from tests.simulation.aws.world import AwsWorld, ContainerWorld

    return ContainerWorld if in_containers else AwsWorld


if __name__ == "__main__":
    sys.exit(main())
