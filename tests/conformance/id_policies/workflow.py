"""A workflow that ends in the way it is told to."""

from stepwell import workflow
from stepwell.exceptions import ApplicationError


@workflow.defn
async def ends(how: str) -> str:
    if how == "waits":
        await workflow.wait_for_signal("end")
    if how == "fails":
        raise ApplicationError("as told")
    return how
