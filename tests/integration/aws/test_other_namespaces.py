"""Commands across namespaces (MT-11) on the tables of AWS: the list of one process counts in another."""

from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.commands import Command
from stepwell.api.common import WorkflowExecution

from stepwell_server.namespaces.registry import Namespaces
from tests.integration.batcher.places import Place, on_aws
from tests.support.aws.cells import Cell
from tests.support.cases import until
from tests.support.crossing import kid
from tests.support.engine import types


async def ask(place: Place, parent: str, command: Command) -> None:
    worker = r.WorkerInfo(identity="w", worker_key="k")
    await place.runs(parent, task_queue=parent)
    poll = r.PollWorkflowTaskRequest(task_queue=parent, worker=worker, timeout=timedelta(seconds=20))
    (task,) = (await place.engine.poll_workflow_task(poll)).tasks
    done = r.RespondWorkflowTaskCompletedRequest(
        task_token=task.task_token, nonce=parent, worker=worker, commands=(command,)
    )
    assert (await place.engine.respond_workflow_task_completed(done)).outcome == "ACCEPTED"


async def answered(place: Place, parent: str, event_type: str) -> None:
    async def is_there() -> bool:
        return event_type in types(await place.history(WorkflowExecution(workflow_id=parent)))

    await until(is_there)


async def test_what_one_process_allows_another_lets_in(cell: Cell) -> None:
    async with on_aws(cell) as place:
        other = Namespaces(place.backend.control, place.backend.clock, place.backend.ids)
        await other.register(r.RegisterNamespaceRequest(namespace="shop"))
        await ask(place, "refused", kid(namespace="shop"))
        await answered(place, "refused", "StartChildWorkflowExecutionFailed")
        await other.update(r.UpdateNamespaceRequest(namespace="shop", callers_allowed=("default",)))
        await ask(place, "parent", kid(namespace="shop"))
        await answered(place, "parent", "ChildWorkflowExecutionStarted")
