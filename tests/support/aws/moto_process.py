"""The process of the emulator: run as a script (with a port, or on any that is free), prints its port,
ends when its standard input ends.

Whoever started it holds the other end of that pipe; however that process dies, this one goes with it.
"""

import logging
import os
import sys
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    import moto_hardening

    moto_hardening.install()
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(
        ip_address="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 0, verbose=False
    )
    server.start()
    _, port = server.get_host_and_port()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # requests that still run are nobody's any more


if __name__ == "__main__":
    main()
