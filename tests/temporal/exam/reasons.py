"""Why tests fail whose own words do not say it, by the test's name as it begins. Found out by hand."""

_DEPLOYMENTS = "worker deployments are not there"
_DOWNLOAD = "downloads a server"

REASONS = {
    "tests/testing/test_workflow.py::test_workflow_env_time_skipping": _DOWNLOAD,
    "tests/testing/test_workflow.py::test_ui_port": _DOWNLOAD,
    "tests/worker/test_payload_size_limits.py::": _DOWNLOAD,
    "tests/worker/test_workflow.py::test_workflow_replace_worker_client": _DOWNLOAD,
    "tests/worker/test_activity.py::test_activity_reset_history": (
        "each attempt resets its activity, and here one that a reset ends is not counted: the next is the first again"
    ),
    "tests/worker/test_activity.py::test_sync_activity_cancel_after_return_does_not_kill_thread_pool_worker": (
        "waits 5 s for what the core does 5 s after the attempt's timeout, of which the workflow hears at once here:"
        " with 8 s it passes"
    ),
    "tests/worker/test_worker.py::test_worker_with_worker_deployment_config": _DEPLOYMENTS,
    "tests/worker/test_worker.py::test_worker_deployment": _DEPLOYMENTS,
    "tests/worker/test_worker.py::test_workflows_can_use": _DEPLOYMENTS,
    "tests/worker/test_worker.py::test_continue_as_new_with": _DEPLOYMENTS,
}


def reason(test: str) -> str:
    """Empty for what its own words say."""
    return next((why for beginning, why in REASONS.items() if test.startswith(beginning)), "")
