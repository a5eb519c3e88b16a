"""Workflows whose activities share what one worker keeps: a file, here a set in memory."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.exceptions import SessionFailedError

LIMIT = timedelta(seconds=30)


class Machine:
    """What a worker has on its disk."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.files: set[str] = set()
        self.open = 0
        self.most_open = 0
        self.go_on = asyncio.Event()

    @activity.defn
    async def fetch(self, file: str) -> str:
        self.files.add(file)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        return self.name

    @activity.defn
    async def convert(self, file: str) -> str:
        assert file in self.files, "it is on another machine"
        return self.name

    @activity.defn
    async def wait(self) -> None:
        await self.go_on.wait()

    @activity.defn
    async def drop(self, file: str) -> str:
        self.files.remove(file)
        self.open -= 1
        return self.name

    @property
    def activities(self) -> list[Any]:
        return [self.fetch, self.convert, self.wait, self.drop]


@workflow.defn
class Convert:
    @workflow.run
    async def run(self, file: str) -> list[str]:
        async with workflow.session(heartbeat_timeout=timedelta(seconds=10)) as session:
            return [
                await workflow.execute_activity_method(
                    step, file, task_queue=session.task_queue, start_to_close_timeout=LIMIT
                )
                for step in (Machine.fetch, Machine.convert, Machine.drop)
            ]


@workflow.defn
class Holds:
    """Holds its session until it is signalled or cancelled."""

    def __init__(self) -> None:
        self.enough = False

    @workflow.run
    async def run(self) -> str:
        async with workflow.session() as session:
            await workflow.wait_condition(lambda: self.enough)
        return "broken" if session.is_broken else "ended"

    @workflow.signal
    def end(self) -> None:
        self.enough = True


@workflow.defn
class TriesAgain:
    """Begins another session when one breaks."""

    @workflow.run
    async def run(self, seconds: float) -> list[str]:
        said: list[str] = []
        while True:
            try:
                async with workflow.session(
                    heartbeat_timeout=timedelta(seconds=seconds), creation_timeout=timedelta(seconds=20)
                ) as session:
                    await workflow.execute_activity_method(
                        Machine.wait, task_queue=session.task_queue, start_to_close_timeout=LIMIT
                    )
                    return [*said, "done"]
            except SessionFailedError as error:
                said.append(error.message)


@workflow.defn
class Impatient:
    @workflow.run
    async def run(self) -> str:
        try:
            async with workflow.session(creation_timeout=timedelta(milliseconds=200)):
                return "began"
        except SessionFailedError as error:
            return error.message
