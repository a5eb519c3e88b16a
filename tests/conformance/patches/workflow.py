"""One workflow in four versions: as it was, with a patch, with the patch deprecated, and with the old code gone."""

from datetime import timedelta

from stepwell import activity, workflow

LIMIT = timedelta(seconds=30)


@activity.defn
async def old_step() -> str:
    return "old"


@activity.defn
async def new_step() -> str:
    return "new"


@workflow.defn(name="rounds")
async def before() -> list[str]:
    return await both([old_step, old_step])


@workflow.defn(name="rounds")
async def patched() -> list[str]:
    first = await call(new_step if workflow.patched("newer-step") else old_step)
    await workflow.wait_for_signal("go")
    return [first, await call(new_step if workflow.patched("newer-step") else old_step)]


@workflow.defn(name="rounds")
async def deprecated() -> list[str]:
    workflow.deprecate_patch("newer-step")
    return await both([new_step, new_step])


@workflow.defn(name="rounds")
async def removed() -> list[str]:
    return await both([new_step, new_step])


async def both(steps: list[object]) -> list[str]:
    first = await call(steps[0])
    await workflow.wait_for_signal("go")
    return [first, await call(steps[1])]


async def call(step: object) -> str:
    result: str = await workflow.execute_activity(step, start_to_close_timeout=LIMIT)  # type: ignore[call-overload]
    return result


STEPS = (old_step, new_step)
