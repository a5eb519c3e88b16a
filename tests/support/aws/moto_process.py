"""The process of the emulator: run as a script (with a port, or on any that is free), prints its port,
ends when its standard input ends.

Whoever started it holds the other end of that pipe; however that process dies, this one goes with it.
"""

import os
import socket
import sys
import threading
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    import moto_hardening
    import moto_serving

    moto_hardening.install()
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    listener = socket.create_server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), backlog=512)
    application = DomainDispatcherApplication(create_backend_app)
    threading.Thread(target=moto_serving.serve, args=(application, listener), daemon=True).start()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # requests that still run are nobody's any more


if __name__ == "__main__":
    main()
