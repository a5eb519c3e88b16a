"""The whole engine in memory, for tests: the same code that serves a file, with nothing to set up or to clean away."""

from collections.abc import Sequence
from types import TracebackType

from ..client import Client
from ..client.interceptors import Interceptor
from ..converter import DataConverter


class DevEnvironment:
    """``async with await DevEnvironment.start() as env:``, then use ``env.client``. Each one has an engine of its
    own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def start(
        cls,
        *,
        namespace: str = "default",
        data_converter: DataConverter = DataConverter.default,
        interceptors: Sequence[Interceptor] = (),
    ) -> "DevEnvironment":
        """Raises ``RuntimeError`` when the engine (the distribution ``stepwell-server``) is not installed."""
        client = await Client.connect(
            "sqlite://:memory:", namespace=namespace, data_converter=data_converter, interceptors=interceptors
        )
        return cls(client)

    @property
    def client(self) -> Client:
        return self._client

    async def shutdown(self) -> None:
        """Stop the engine; its workflows are gone."""
        await self._client.close()

    async def __aenter__(self) -> "DevEnvironment":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()
