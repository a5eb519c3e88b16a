"""How a worker runs workflow code: behind the guards, or with all of them lifted (PM-25)."""


class SandboxedWorkflowRunner:
    """The default: what replay could not repeat raises, except in workflows with ``sandboxed=False``."""


class UnsandboxedWorkflowRunner:
    """No guard on any workflow of the worker, such as beside tools that patch the same modules. Nothing then finds
    clock, randomness or files in workflow code before replay does.
    """


WorkflowRunner = SandboxedWorkflowRunner | UnsandboxedWorkflowRunner


def is_sandboxed(runner: WorkflowRunner) -> bool:
    """Raises ``TypeError`` for what is no runner."""
    if not isinstance(runner, WorkflowRunner):
        raise TypeError(
            f"workflow_runner must be SandboxedWorkflowRunner() or UnsandboxedWorkflowRunner(), not {runner!r}"
        )
    return isinstance(runner, SandboxedWorkflowRunner)
