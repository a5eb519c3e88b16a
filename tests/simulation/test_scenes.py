"""Each scene ends as it should, and finds the fault that is planted into what it is about: with one play of it."""

from asyncio import InvalidStateError

import pytest

from tests.simulation import (
    plants,
    plants_chain,
    plants_child,
    plants_crossing,
    plants_messages,
    plants_reset,
    scenes,
    scenes_messages,
    scenes_runs,
)
from tests.simulation.plants import Plant
from tests.simulation.stage import Scene, play
from tests.simulation.violation import Violation

SCENES: dict[Scene, tuple[Plant, str]] = {
    scenes.two_polls_take_one_attempt_at_the_same_moment: (plants.equal_puts_are_one, "given to two polls"),
    scenes.a_task_is_done_when_the_clock_is_back_before_a_timer_that_it_was_left: (
        plants.timers_left_to_a_task_forgotten,
        "CompleteWorkflowTask, but work is due",
    ),
    scenes.the_clock_goes_back_between_a_deadline_and_its_firing: (plants.early_firing_struck_off, "was taken off"),
    scenes.the_clock_is_back_before_what_an_item_had_armed_and_has_fired: (
        plants.fired_times_counted_on,
        "nothing is armed for it",
    ),
    scenes.a_run_begins_before_what_the_closed_one_had_armed: (
        plants.armed_time_of_closed_run_kept,
        "Start, but work is due",
    ),
    scenes.a_poll_ends_at_the_moment_of_a_match: (plants.hint_for_a_cancelled_poll_lost, "invalid state"),
    scenes_messages.a_dropped_task_is_answered_again_when_the_next_is_out: (
        plants_messages.dropped_task_without_fence,
        "task that was dropped is",
    ),
    scenes_messages.a_run_goes_on_as_another_and_has_not_seen_an_update: (
        plants_messages.unseen_update_lost_between_runs,
        "is no longer there",
    ),
    scenes_messages.a_reset_goes_back_to_a_run_that_knows_an_update_of_the_current_one: (
        plants_reset.known_update_passed_on,
        "is shown an update that has ended",
    ),
    scenes_messages.a_reset_goes_back_past_a_run_of_another_chain: (
        plants_reset.strangers_taken_over,
        "signals of another chain",
    ),
    scenes_messages.two_signals_to_others_are_answered: (plants_crossing.answers_lost, "was not told"),
    scenes_messages.a_parent_closes_before_it_hears_that_its_child_has_ended: (
        plants_child.parent_close_by_id,
        "as a child, and is none",
    ),
    scenes_messages.a_signal_is_delivered_again_behind_many_others: (
        plants_crossing.repeats_taken_for_new,
        "a second time",
    ),
    scenes_runs.a_worker_answers_a_task_that_another_has_done: (plants.rebase_instead_of_refuse, "has done is"),
    scenes_runs.a_result_is_reported_again_when_the_workflow_was_not_told: (
        plants.no_wake_up_on_repeat,
        "was not told of a result",
    ),
    scenes_runs.a_run_is_asked_for_that_another_follows: (
        plants.end_of_a_followed_run_not_found,
        "is followed by another is shown as",
    ),
    scenes_runs.a_workflow_fails_as_often_as_it_may: (plants_chain.attempts_not_counted, "has not ended"),
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_ends_as_it_should(scene: Scene) -> None:
    play(scene)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_finds_what_is_planted(scene: Scene) -> None:
    plant, finding = SCENES[scene]
    with plant(), pytest.raises((Violation, InvalidStateError), match=finding):
        play(scene)
