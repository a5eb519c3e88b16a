"""Changes of workflow code under open runs (VE-01 to VE-04)."""

from ..replay.machines.marker import DEFAULT_VERSION
from ..replay.runtime import current_runtime


def patched(id: str) -> bool:
    """True when this run takes the new path of a change, which is then recorded (VE-01).

    False for a run that passed here before the change was deployed, or before the worker's
    ``patch_activation_callback`` let it (VE-04); the first answer holds for the rest of the run. In a query it is that
    answer, and False when the run has not asked yet.
    """
    return current_runtime().changes.patched(_text("patched", id), deprecated=False)


def deprecate_patch(id: str) -> None:
    """Stands where ``patched(id)`` stood once no run on the old path is left; delete it when no run with the marker
    is left (VE-02).
    """
    current_runtime().changes.patched(_text("deprecate_patch", id), deprecated=True)


def version(change_id: str, min_supported: int, max_supported: int, *, new_runs: int | None = None) -> int:
    """Which version of a change this run takes: a number from ``min_supported`` to ``max_supported`` (VE-03).

    A run that comes here for the first time takes ``new_runs``, or ``max_supported`` when that is not given, and the
    number is recorded; a run that passed here before the change was deployed is on :data:`DEFAULT_VERSION`. The first
    answer holds for the rest of the run. To deploy a new path before it is used, raise ``max_supported`` and leave
    ``new_runs`` at the version before; then raise that too (VE-04).

    Raise ``min_supported`` when no run below it is open: a run on a version that is not supported fails its workflow
    task. With both limits the same the marker says that the call may be deleted, as :func:`deprecate_patch` does.
    ``patched`` with the same id counts as version 1. In a query it is what the run was told, and ``DEFAULT_VERSION``
    when the run has not asked yet.

    Raises ``ValueError`` for limits that are no range.
    """
    runtime = current_runtime()
    wanted = max_supported if new_runs is None else new_runs
    if not _text("version", change_id):
        raise ValueError("workflow.version: change_id must not be empty")
    for field, number in (("min_supported", min_supported), ("max_supported", max_supported), ("new_runs", wanted)):
        if not isinstance(number, int):
            raise TypeError(
                f"workflow.version: {change_id!r} has {field} {number!r}, which is {type(number).__name__}; "
                "versions are whole numbers"
            )
    if not DEFAULT_VERSION <= min_supported <= max_supported:
        raise ValueError(
            f"workflow.version: {change_id!r} has min_supported {min_supported} and max_supported {max_supported}; "
            f"they go up, from DEFAULT_VERSION ({DEFAULT_VERSION})"
        )
    if not min_supported <= wanted <= max_supported:
        raise ValueError(
            f"workflow.version: {change_id!r} has new_runs {wanted}, which is not from min_supported {min_supported} "
            f"to max_supported {max_supported}"
        )
    return runtime.changes.version(change_id, min_supported, max_supported, wanted)


def _text(caller: str, id: object) -> str:
    """Refuses what a marker would give back as something else in the next replay."""
    if not isinstance(id, str):
        raise TypeError(f"workflow.{caller}: the id of a change must be text, not {type(id).__name__}")
    return id
