"""One process of a function: a loop kept for the life of the process, and on it the parts and the engine, made with the
first call.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from ..adapters.aws.settings import AwsSettings
from ..common.telemetry import Write, structured_logs, to_stdout
from ..history.engine import Engine
from .aws_parts import AwsParts, function_engine, open_parts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FunctionProcess:
    runner: "asyncio.Runner"
    parts: AwsParts
    engine: Engine

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs ``work`` to its end on the loop of this process."""
        return self.runner.run(work)

    def close(self) -> None:
        self.runner.run(_close(self.parts, self.engine))
        self.runner.close()


def open_process(settings: AwsSettings, *, hands_on: bool = False, write: Write = to_stdout) -> FunctionProcess:
    """``hands_on``: it does what its commits owe, and does not leave that to the feed. Raises AwsRefused and
    StoreUnavailable; the call is then tried again by whoever made it."""
    runner = asyncio.Runner()
    try:
        parts, engine = runner.run(_open(settings, hands_on, write))
    except BaseException:
        runner.close()
        raise
    return FunctionProcess(runner, parts, engine)


@cache
def this_process(*, hands_on: bool = False, signs_tokens: bool = True) -> FunctionProcess:
    """Of the environment that the function runs in. One that could not be opened is tried again with the next call."""
    settings = replace(AwsSettings.from_environment(), signs_tokens=signs_tokens)
    structured_logs(settings.names.cell)
    return open_process(settings, hands_on=hands_on)


async def _open(settings: AwsSettings, hands_on: bool, write: Write) -> tuple[AwsParts, Engine]:
    parts = await open_parts(settings, stays=False, hands_on=hands_on, write=write)
    engine = function_engine(parts)
    await engine.start()
    return parts, engine


async def _close(parts: AwsParts, engine: Engine) -> None:
    await engine.stop()
    await parts.backend.close()
