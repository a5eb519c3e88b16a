"""Restate server with Python handlers; the client speaks its ingress HTTP API."""

import asyncio
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import aiohttp
from harness import main
from peer import BASE, Peer

SERVER = f"{BASE}/restate-server/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server"
INGRESS, ADMIN, HANDLERS, NODE = 18080, 19070, 19080, 15122


class RestatePython(Peer):
    name = "restate-python"
    session: aiohttp.ClientSession | None = None

    async def start_server(self, *, fresh: bool) -> None:
        if fresh:
            self.fresh_directory()
        settings = {
            "RESTATE_BASE_DIR": self.directory,
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{INGRESS}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{ADMIN}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{NODE}",
            "RESTATE_LOG_FILTER": "warn",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "1",
            "RESTATE_NODE_NAME": "n1",
            "RESTATE_CLUSTER_NAME": "bench",
        }
        self.spawn("server", [SERVER], env=settings)
        async with aiohttp.ClientSession() as session:
            for _ in range(300):
                try:
                    async with (
                        session.get(f"http://127.0.0.1:{ADMIN}/health") as admin,
                        session.get(f"http://127.0.0.1:{INGRESS}/restate/health") as ingress,
                    ):
                        if admin.status == ingress.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)
        raise RuntimeError("the Restate server did not come up")

    async def start_worker(self) -> None:
        hypercorn = os.path.join(os.path.dirname(sys.executable), "hypercorn")
        self.spawn("worker", [hypercorn, "restate_app:app", "--bind", f"127.0.0.1:{HANDLERS}"], cwd=HERE)

    async def reconnect(self) -> None:
        if self.session is not None:
            await self.session.close()
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=600), timeout=aiohttp.ClientTimeout(600), raise_for_status=True
        )

    async def _call(self, method: str, url: str, body: object = None) -> object:
        assert self.session is not None
        sent = {} if method == "GET" else {"json": body}
        async with self.session.request(method, url, **sent) as response:
            text = await response.read()
            return json.loads(text) if text else None

    async def up(self, *, fresh: bool) -> None:
        self.kinds: dict[str, str] = {}
        await self.start_server(fresh=fresh)
        await self.start_worker()
        await asyncio.sleep(2)
        await self.reconnect()
        deployment = {"uri": f"http://127.0.0.1:{HANDLERS}", "force": True}
        await self._call("POST", f"http://127.0.0.1:{ADMIN}/deployments", deployment)

    async def down(self) -> None:
        if self.session is not None:
            await self.session.close()
        self.kill_all()

    async def start(self, kind: str, workflow_id: str, n: int) -> None:
        await self._call("POST", f"http://127.0.0.1:{INGRESS}/{kind.capitalize()}/{workflow_id}/run/send", n)
        self.kinds[workflow_id] = kind.capitalize()

    async def wait(self, workflow_id: str) -> object:
        path = f"/restate/workflow/{self.kinds[workflow_id]}/{workflow_id}/attach"
        return await self._call("GET", f"http://127.0.0.1:{INGRESS}{path}")

    async def signal(self, workflow_id: str, index: int) -> None:
        await self._call("POST", f"http://127.0.0.1:{INGRESS}/Sig/{workflow_id}/message", index)


if __name__ == "__main__":
    main(RestatePython)
