"""The three ways an activity's function is run: on the loop, in a thread, in another process."""

import contextvars
import uuid
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ..activity.context import CompleteAsyncError
from ..api.payloads import Payloads
from .interceptors import ActivityInboundInterceptor, ExecuteActivityInput
from .process_call import ProcessCall, ProcessResult, run_in_process
from .thread_interrupt import ThreadInterrupt

if TYPE_CHECKING:
    from .attempt import Attempt


class ActivityRoot(ActivityInboundInterceptor):
    """End of the chain of interceptors: runs the function."""

    def __init__(self, attempt: "Attempt") -> None:
        self._attempt = attempt

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if self._attempt.definition.is_async:
            return await input.fn(*input.args)
        if isinstance(input.executor, ThreadPoolExecutor):
            return await self._in_thread(input, input.executor)
        if input.executor is None:
            raise RuntimeError("a synchronous activity needs an executor; give the worker an activity_executor")
        return await self._in_process(input, input.executor)

    async def _in_thread(self, input: ExecuteActivityInput, executor: Executor) -> Any:
        attempt = self._attempt
        if attempt.definition.no_thread_cancel_exception:
            call = contextvars.copy_context().run
            return await attempt.worker.loop.run_in_executor(executor, call, input.fn, *input.args)
        interrupt = ThreadInterrupt()
        attempt.shield = interrupt.shield
        attempt.interrupt_with(interrupt.interrupt)

        def run() -> Any:
            interrupt.enter()
            try:
                return input.fn(*input.args)
            finally:
                interrupt.leave()

        return await attempt.worker.loop.run_in_executor(executor, contextvars.copy_context().run, run)

    async def _in_process(self, input: ExecuteActivityInput, executor: Executor) -> Any:
        attempt = self._attempt
        worker = attempt.worker
        shared, worker_shutdown = await worker.shared_state()
        key = uuid.uuid4().hex
        cancelled = await worker.loop.run_in_executor(None, shared.new_event)
        attempt.interrupt_with(cancelled.set)
        heartbeats = attempt.heartbeats()

        def received(details: Payloads) -> None:
            heartbeats.record(details, from_loop=False)

        shared.receive(key, received)
        call = ProcessCall(
            fn=input.fn,
            args=input.args,
            info=attempt.info(),
            payload_converter_class=worker.converter.payload_converter_class,
            failure_converter_class=worker.converter.failure_converter_class,
            key=key,
            heartbeats=shared.heartbeats,
            cancelled=cancelled,
            worker_shutdown=worker_shutdown,
        )
        try:
            result: ProcessResult = await worker.loop.run_in_executor(executor, run_in_process, call)
        finally:
            shared.forget(key)
        if result.last_heartbeat is not None:
            # It may still be in the queue, which is slower than the result.
            heartbeats.last = result.last_heartbeat
        if result.goes_on:
            raise CompleteAsyncError
        if result.failure is not None:
            raise worker.converter.from_failure(result.failure)
        return result.value
