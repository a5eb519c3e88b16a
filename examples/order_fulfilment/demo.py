"""The example as a show: runs three orders in a fresh folder, then says what the services saw and where to look.

With --kill the process that holds engine and worker is killed twice in the middle of an order and started again.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .run import NEVER_SHIPPED, SHIPPED, prepare
from .shop import Shop

FOLDER = Path(__file__).resolve().parents[2] / ".demo"
KILLS = (
    # The payment service has taken the money and its answer has not reached us: the worst moment there is.
    f"{SHIPPED.order_id} asking the payment service",
    f"{SHIPPED.order_id} stock reserved, waiting",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--kill", action="store_true", help="kill the process twice on the way and start it again")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="emptied first (default: .demo of the repository)")
    options = parser.parse_args()
    folder: Path = options.folder.absolute()
    _fresh(folder)
    prepare(folder, hang=options.kill)
    print(f"Three orders on the engine in one process, which keeps everything in {_shown(folder / 'orders.db')}\n")
    code = _watch(folder, list(KILLS) if options.kill else [])
    if code == 0:
        _summary(folder)
    return code


def _fresh(folder: Path) -> None:
    """Empties the folder, if it is one of ours."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "orders.db").exists():
        raise SystemExit(f"{folder} has files that are not this demo's; name another folder with --folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _watch(folder: Path, kills: list[str]) -> int:
    """Runs the process and passes its lines on; at the line that is first in ``kills``, kills it and starts anew."""
    while True:
        command = [sys.executable, "-m", "order_fulfilment.run", "--folder", str(folder)]
        # A group of its own, so that Ctrl-C reaches this process only, which then ends the other.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_variables(), process_group=0)
        try:
            if not _killed_at(process, folder, kills):
                return process.wait()
        except KeyboardInterrupt:
            return 130
        finally:
            process.kill()
            process.wait()
        print("\n*** kill -9: the process with engine and worker is gone. It is started again: ***\n", flush=True)


def _killed_at(process: subprocess.Popen[str], folder: Path, kills: list[str]) -> bool:
    """False when the process came to its end without being killed."""
    for line in process.stdout or ():
        print(line, end="", flush=True)
        if kills and kills[0] in " ".join(line.split()):
            kills.pop(0)
            _wait_for_effect(folder)
            process.send_signal(signal.SIGKILL)
            return True
    return False


def _wait_for_effect(folder: Path) -> None:
    """Until the money is taken; the line that was seen only says that it was asked for."""
    shop = Shop(folder / "shop.db")
    deadline = time.monotonic() + 10
    while not any(charge.order_id == SHIPPED.order_id for charge in shop.charges()):
        if time.monotonic() > deadline:
            raise SystemExit("the payment service was asked and took no money in 10 s; the example is broken")
        time.sleep(0.02)


def _summary(folder: Path) -> None:
    print("\nWhat the payment service has in its book, one charge for each order whatever happened on the way:")
    for charge in Shop(folder / "shop.db").charges():
        money = f"{charge.amount_cents / 100:>10.2f}"
        fate = "refunded" if charge.refunded else "kept"
        print(f"  {charge.payment_id}  {charge.order_id}  {money}  {fate:<9} (requests for it: {charge.requests})")
    stepwell = shlex.quote(_shown(Path(sys.executable).with_name("stepwell")))
    address = "--address " + shlex.quote("sqlite:///" + _shown(folder / "orders.db"))
    print("\nEverything that happened is in the histories; look at them with")
    print(f"  {stepwell} workflow list {address}")
    print(f"  {stepwell} workflow show {SHIPPED.order_id} {address}")
    print(f"  {stepwell} workflow show {NEVER_SHIPPED.order_id} {address} --output json")


def _shown(path: Path) -> str:
    return os.path.relpath(path) if Path.cwd() in path.parents else str(path)


def _variables() -> dict[str, str]:
    examples = str(Path(__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [examples, os.environ.get("PYTHONPATH")]))}


if __name__ == "__main__":
    sys.exit(main())
