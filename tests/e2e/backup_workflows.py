"""Workflow of the backup test."""

from stepwell import workflow


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self.messages: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: "end" in self.messages)
        return self.messages

    @workflow.signal
    def add(self, message: str) -> None:
        self.messages.append(message)

    @workflow.query
    def seen(self) -> list[str]:
        return self.messages
