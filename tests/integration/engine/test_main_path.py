"""The main job by requests alone: start, steps, a timer, a signal, a result."""

from datetime import timedelta

from stepwell.api.commands import CompleteWorkflowExecution, StartTimer

from tests.support.engine import activity, payload, running, types


async def test_fused_steps_to_the_end() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        assert types(task.events) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        assert answer.outcome == "ACCEPTED" and answer.fusible and len(answer.leases) == 1
        for number in ("2", "3"):
            answer = await driver.fused(answer, activity(number), now=answer.commit_time)
            assert answer.outcome == "ACCEPTED", answer.message
            assert [lease.activity_id for lease in answer.leases] == [number]
        answer = await driver.fused(answer, CompleteWorkflowExecution(result=payload("ok")), now=answer.commit_time)
        assert answer.outcome == "ACCEPTED" and not answer.fusible
        closed = await driver.result()
        assert closed.event_type == "WorkflowExecutionCompleted"
        step = [
            "ActivityTaskStarted",
            "ActivityTaskCompleted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
        ]
        expected = ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted"]
        expected += [*["ActivityTaskScheduled", *step] * 3, "WorkflowExecutionCompleted"]
        history = await driver.history()
        assert types(history) == expected
        assert [event.event_id for event in history] == list(range(1, len(history) + 1))


async def test_steps_through_the_queue() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1", eager=False))
        assert answer.leases == ()
        (attempt,) = await driver.poll_activities()
        assert attempt.input == payload("1") and attempt.attempt == 1
        assert [reply.error_code for reply in await driver.done(attempt)] == [""]
        task = await driver.take()
        assert types(task.events) == [
            "ActivityTaskScheduled",
            "ActivityTaskStarted",
            "ActivityTaskCompleted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
        ]
        await driver.finish(task)
        assert (await driver.result()).event_type == "WorkflowExecutionCompleted"


async def test_timer_and_signal() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        timer = StartTimer(timer_id="1", start_to_fire_timeout=timedelta(milliseconds=150))
        await driver.complete(task.task_token, timer)
        task = await driver.take()
        assert types(task.events) == ["TimerStarted", "TimerFired", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
        started, fired = task.events[0].event_time, task.events[1].event_time
        assert timedelta(milliseconds=150) <= fired - started < timedelta(seconds=1)
        await driver.complete(task.task_token)
        await driver.signal()
        task = await driver.take()
        assert types(task.events)[0] == "WorkflowExecutionSignaled"
        await driver.finish(task)
        await driver.result()


async def test_a_fused_step_records_the_size_that_its_worker_was_told() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        told = answer.history_size_bytes
        assert told > 0
        answer = await driver.fused(answer, activity("2"), now=answer.commit_time)
        started = (await driver.history())[answer.started_event_id - 1].attributes
        assert started.history_size_bytes == told
        assert answer.history_size_bytes > told
