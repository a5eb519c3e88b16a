"""What workflow code calls. Names follow ``temporalio.workflow``; ``wait_for_signal`` and function-style workflows
are this package's own.
"""

from ..api.enums import ChildWorkflowCancellationType, ParentClosePolicy, SuggestContinueAsNewReason
from ..replay.errors import (
    ContinueAsNewError,
    ForbiddenInWorkflowError,
    NondeterminismError,
    NotInWorkflowError,
    ReadOnlyContextError,
)
from ..replay.machines.activity import ActivityCancellationType, ActivityHandle
from ..replay.machines.child import ChildWorkflowHandle
from ..replay.machines.marker import DEFAULT_VERSION
from . import unsafe
from .about import (
    get_current_details,
    instance,
    memo,
    memo_value,
    search_attributes,
    set_current_details,
    upsert_memo,
    upsert_search_attributes,
)
from .activities import (
    ActivityConfig,
    execute_activity,
    execute_activity_method,
    start_activity,
    start_activity_method,
)
from .aio import as_completed, wait
from .children import ChildWorkflowConfig, execute_child_workflow, start_child_workflow
from .context import (
    cancellation_reason,
    extern_functions,
    in_workflow,
    info,
    new_random,
    now,
    payload_converter,
    random,
    time,
    time_ns,
    uuid4,
    uuid7,
)
from .continuation import (
    continue_as_new,
    get_last_completion_result,
    get_last_failure,
    has_last_completion_result,
)
from .decorators import defn, init, query, run, signal
from .definition import HandlerUnfinishedPolicy
from .external import ExternalWorkflowHandle, get_external_workflow_handle, get_external_workflow_handle_for
from .fan_out import FanOutError, FanOutItem, FanOutResult, FanOutStatus, fan_out
from .info import Info, ParentInfo, RootInfo
from .local_activities import (
    LocalActivityConfig,
    execute_local_activity,
    execute_local_activity_class,
    execute_local_activity_method,
    start_local_activity,
    start_local_activity_class,
    start_local_activity_method,
)
from .logger import LoggerAdapter, logger
from .signals import (
    all_handlers_finished,
    get_dynamic_query_handler,
    get_dynamic_signal_handler,
    get_query_handler,
    get_signal_handler,
    set_dynamic_query_handler,
    set_dynamic_signal_handler,
    set_query_handler,
    set_signal_handler,
    wait_for_signal,
)
from .timers import sleep, sleep_until, wait_condition
from .updates import (
    UpdateInfo,
    UpdateMethodMultiParam,
    current_update_info,
    get_dynamic_update_handler,
    get_update_handler,
    set_dynamic_update_handler,
    set_update_handler,
    update,
)
from .versions import deprecate_patch, patched, version

__all__ = [
    "DEFAULT_VERSION",
    "ActivityCancellationType",
    "ActivityConfig",
    "ActivityHandle",
    "ChildWorkflowCancellationType",
    "ChildWorkflowConfig",
    "ChildWorkflowHandle",
    "ContinueAsNewError",
    "ExternalWorkflowHandle",
    "FanOutError",
    "FanOutItem",
    "FanOutResult",
    "FanOutStatus",
    "ForbiddenInWorkflowError",
    "HandlerUnfinishedPolicy",
    "Info",
    "LocalActivityConfig",
    "LoggerAdapter",
    "NondeterminismError",
    "NotInWorkflowError",
    "ParentClosePolicy",
    "ParentInfo",
    "ReadOnlyContextError",
    "RootInfo",
    "SuggestContinueAsNewReason",
    "UpdateInfo",
    "UpdateMethodMultiParam",
    "all_handlers_finished",
    "as_completed",
    "cancellation_reason",
    "continue_as_new",
    "current_update_info",
    "defn",
    "deprecate_patch",
    "execute_activity",
    "execute_activity_method",
    "execute_child_workflow",
    "execute_local_activity",
    "execute_local_activity_class",
    "execute_local_activity_method",
    "extern_functions",
    "fan_out",
    "get_current_details",
    "get_dynamic_query_handler",
    "get_dynamic_signal_handler",
    "get_dynamic_update_handler",
    "get_external_workflow_handle",
    "get_external_workflow_handle_for",
    "get_last_completion_result",
    "get_last_failure",
    "get_query_handler",
    "get_signal_handler",
    "get_update_handler",
    "has_last_completion_result",
    "in_workflow",
    "info",
    "init",
    "instance",
    "logger",
    "memo",
    "memo_value",
    "new_random",
    "now",
    "patched",
    "payload_converter",
    "query",
    "random",
    "run",
    "search_attributes",
    "set_current_details",
    "set_dynamic_query_handler",
    "set_dynamic_signal_handler",
    "set_dynamic_update_handler",
    "set_query_handler",
    "set_signal_handler",
    "set_update_handler",
    "signal",
    "sleep",
    "sleep_until",
    "start_activity",
    "start_activity_method",
    "start_child_workflow",
    "start_local_activity",
    "start_local_activity_class",
    "start_local_activity_method",
    "time",
    "time_ns",
    "unsafe",
    "update",
    "upsert_memo",
    "upsert_search_attributes",
    "uuid4",
    "uuid7",
    "version",
    "wait",
    "wait_condition",
    "wait_for_signal",
]
