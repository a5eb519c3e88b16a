"""A workflow whose activities and child say what goes first, or inherit it."""

from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import Priority

TENANT = Priority(priority_key=4, fairness_key="tenant", fairness_weight=2.5)


def said(priority: Priority) -> list[str | float | None]:
    return [priority.priority_key, priority.fairness_key, priority.fairness_weight]


@activity.defn
async def note(name: str) -> list[str | float | None]:
    return said(activity.info().priority)


@workflow.defn
class Inner:
    @workflow.run
    async def run(self) -> list[str | float | None]:
        return said(workflow.info().priority)


@workflow.defn
class Outer:
    @workflow.run
    async def run(self, inner_id: str) -> dict[str, list[str | float | None]]:
        limit = timedelta(seconds=30)
        return {
            "own": said(workflow.info().priority),
            "inherits": await workflow.execute_activity(note, "inherits", start_to_close_timeout=limit),
            "says": await workflow.execute_activity(
                note, "says", start_to_close_timeout=limit, priority=Priority(priority_key=1, fairness_key="other")
            ),
            "child": await workflow.execute_child_workflow(
                Inner.run, id=inner_id, priority=Priority(fairness_weight=0.5)
            ),
        }


@workflow.defn
class ManyTenants:
    """Its activities wait until a worker comes; each belongs to the tenant that its name begins with."""

    @workflow.run
    async def run(self, queue: str, names: list[str]) -> None:
        for name in names:
            tenant, level = name.split("-")[:2]
            workflow.start_activity(
                note,
                name,
                task_queue=queue,
                schedule_to_close_timeout=timedelta(seconds=60),
                priority=Priority(priority_key=int(level), fairness_key=tenant),
            )
        await workflow.sleep(3600)
