"""One installation as one stack: storage, functions, what runs behind commits, API, access, observability."""

from aws_cdk import Environment, Stack, Tags
from aws_cdk import aws_iam as iam
from constructs import Construct

import access
from api import Api
from cell import Cell
from functions import TAKE, Functions, queue_actions, task_queue_arns
from observability import Observability
from processing import Processing
from service import ContainerService
from storage import Storage


class StepwellStack(Stack):
    """``stepwell-<cell>``."""

    def __init__(self, scope: Construct, cell: Cell) -> None:
        super().__init__(
            scope,
            cell.prefix,
            description=f"Stepwell, durable workflows: cell {cell.name}",
            termination_protection=not cell.destroy,
            env=Environment(region=cell.region) if cell.region else None,
        )
        self.cell = cell
        Tags.of(self).add("stepwell:cell", cell.name)
        self.task_queue_arns = task_queue_arns(cell)
        self.storage = Storage(self, "Storage", cell)
        self.functions = Functions(self, "Functions", cell, self.storage)
        self.processing = Processing(self, "Processing", cell, self.storage, self.functions)
        self.api = Api(self, "Api", cell, self.functions)
        self.policies = [self._policy(grant) for grant in _unique((*access.GENERAL, *cell.grants))]
        self.observability = Observability(self, "Observability", cell, self.storage, self.functions, self.api)
        self.service = None
        if cell.service is not None:
            self.service = ContainerService(self, "Service", cell, cell.service, self.storage)

    @property
    def roles(self) -> list[iam.IRole]:
        """Of everything that runs."""
        roles = [role for function in self.functions.all if (role := function.role) is not None]
        return roles + ([self.service.role] if self.service is not None else [])

    def _policy(self, grant: access.Grant) -> tuple[iam.ManagedPolicy, list[str]]:
        resources = [f"{self.api.arn}{pattern}" for pattern in access.patterns(grant)]
        queues = self.task_queue_arns if grant.role == "worker" else []
        name = grant.policy_name("Access")
        taking = [*queue_actions(self.cell, (*TAKE, "GetQueueUrl"))]
        key = None if self.storage.key is None else self.storage.key.key_arn
        made = access.policy(self, name, grant, calls=resources, queues=queues, taking=taking, key=key)
        return made, [*resources, *queues]


def _unique(grants: tuple[access.Grant, ...]) -> list[access.Grant]:
    return list(dict.fromkeys(grants))
