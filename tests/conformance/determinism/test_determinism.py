"""PM-09, PM-10: time and randomness are the run's own: the same in each replay, others in another run."""

from tests.conformance.determinism.workflow import Draws, draws_once, keep, misfits
from tests.support.cases import until
from tests.support.conformance import Feature


async def test_a_replay_draws_the_same(feature: Feature) -> None:
    """Also in another worker's process, which knows nothing but the history."""
    handle = await feature.start(Draws.run)
    async with feature.worker([Draws], [keep]):

        async def waits() -> bool:
            described = await handle.describe()
            return described.history_length >= 10 and described.pending_workflow_task is None

        await until(waits)
    async with feature.worker([Draws], [keep]):
        await handle.signal("go")
        assert await handle.result() is True


async def test_another_run_draws_otherwise(feature: Feature) -> None:
    async with feature.worker([draws_once]):
        first = await feature.start(draws_once, id="first")
        second = await feature.start(draws_once, id="second")
        assert await first.result() != await second.result()


async def test_a_value_that_does_not_fit_is_refused_in_a_replay_as_well(feature: Feature) -> None:
    """Code that catches this takes the same way again."""
    handle = await feature.start(misfits)
    async with feature.worker([misfits], [keep]):
        assert await handle.result() == [
            "activity 'keep'",
            "activity 'keep'",
            "workflow 'Mailbox'",
            "child workflow 'mailbox'",
            "signal 'put'",
        ]
