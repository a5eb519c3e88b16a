"""Schedules from the terminal, from their creation to their end."""

from pathlib import Path
from typing import Any

from tests.support.cli import Cli, cli, server

__all__ = ["cli", "server"]

_ECHO = ("--type", "Echo", "-t", "echo")


def until(cli: Cli, schedule_id: str, count: int) -> dict[str, Any]:
    """Described when it has acted so often."""
    while True:
        described: dict[str, Any] = cli.json("schedule", "describe", schedule_id)
        if described["info"].get("action_count", 0) >= count:
            return described


def test_a_schedule_from_its_creation_to_its_end(cli: Cli) -> None:
    when = ("--cron", "30 2 * * mon-fri", "--interval", "1h/10m", "--skip", '{"month": "dec", "day_of_month": 25}')
    more = ("--time-zone", "Europe/Rome", "--overlap-policy", "buffer_one", "--note", "first", "--input", "7")
    created = cli.json("schedule", "create", "nightly", *when, *more, *_ECHO, "--trigger-immediately")
    assert created == {"schedule_id": "nightly"}
    assert cli("schedule", "create", "nightly", *_ECHO, code=3) == "" and "there is a schedule" in cli.said
    started = until(cli, "nightly", 1)["info"]["recent_actions"][0]["start_workflow_result"]
    assert cli("result", started["workflow_id"]) == "[\n  7\n]\n"
    told = cli("schedule", "describe", "nightly")
    for part in (
        "ACTIVE",
        "first",
        'cron "30 2 * * mon-fri"',
        "every 1h + 10m",
        "day_of_month 25, month 12",
        "1 action",
    ):
        assert part in told
    assert "Europe/Rome" in told and "overlap BUFFER_ONE" in told and "Next actions" in told
    assert ":10:00.000+01:00  in " in told or ":10:00.000+02:00  in " in told, "as clocks in Rome say it"
    cli("schedule", "toggle", "nightly", "--pause", "--reason", "holidays")
    told = cli("schedule", "describe", "nightly")
    assert "PAUSED" in told and "holidays" in told and "Next actions" not in told
    assert "PAUSED" in cli("schedule", "list") and "holidays" in cli("schedule", "list")
    cli("schedule", "trigger", "nightly", "--overlap-policy", "allow_all")
    until(cli, "nightly", 2)
    cli("schedule", "toggle", "nightly", "--unpause")
    assert [entry["schedule_id"] for entry in cli.json("schedule", "list", "--limit", "1")] == ["nightly"]
    assert cli("schedule", "count", "--query", "StepwellSchedulePaused = false").strip() == "1"
    cli("schedule", "delete", "nightly")
    assert cli("schedule", "describe", "nightly", code=3) == "" and "no such schedule" in cli.said


def test_an_update_changes_what_is_given_and_a_backfill_makes_up(cli: Cli) -> None:
    cli("schedule", "create", "hourly", "--interval", "1h", *_ECHO, "--input", "1", "--memo", "a=1")
    before = cli.json("schedule", "describe", "hourly")["schedule"]
    cli("schedule", "update", "hourly", "--input", "2", "--run-timeout", "1h", "--remaining-actions", "5")
    after = cli.json("schedule", "describe", "hourly")["schedule"]
    assert after["spec"] == before["spec"] and after["state"]["remaining_actions"] == 5
    action = after["action"]["start_workflow"]
    assert action["workflow_run_timeout"] == "PT3600S" and action["memo"] == before["action"]["start_workflow"]["memo"]
    window = ("--start-time", "2026-01-05T00:30:00Z", "--end-time", "2026-01-05T03:00:00Z")
    backfill = ("schedule", "backfill", "hourly", *window, "--overlap-policy", "allow_all")
    assert cli(*backfill, code=2) == "" and "hourly names 3 times then; each of them starts a run" in cli.said
    assert "--yes goes on" in cli.said
    nothing = ("--start-time", "2026-01-05T00:30:00Z", "--end-time", "2026-01-05T00:59:00Z")
    assert cli("schedule", "backfill", "hourly", *nothing, code=3) == "" and "names no time then" in cli.said
    cli(*backfill, "--yes")
    done = until(cli, "hourly", 3)["info"]["recent_actions"]
    assert [one["schedule_time"] for one in done] == [f"2026-01-05T0{hour}:00:00Z" for hour in (1, 2, 3)]
    assert cli("result", done[0]["start_workflow_result"]["workflow_id"]) == "[\n  2\n]\n"
    cli("schedule", "update", "hourly", "--cron", "@daily")
    spec = cli.json("schedule", "describe", "hourly")["schedule"]["spec"]
    assert spec["cron_expressions"] == ["@daily"] and "intervals" not in spec
    assert cli("schedule", "update", "hourly", code=2) == "" and "what to change" in cli.said


def test_runs_and_schedules_are_found_by_search_attributes(cli: Cli) -> None:
    city = ("--search-attribute", 'Town="Rome"', "--search-attribute", "Persons=5")
    cli.start("in-rome", "Echo", "1")
    cli("start", *_ECHO, "-w", "to-rome", *city)
    found = cli.json("list", "--query", "Town = 'Rome' AND Persons > 4")
    assert [one["execution"]["workflow_id"] for one in found] == ["to-rome"]
    mine = ("--schedule-search-attribute", 'Town="Oslo"')
    cli("schedule", "create", "to-oslo", "--interval", "300d", *_ECHO, *city, *mine)
    found = cli.json("schedule", "list", "--query", "Town = 'Oslo'")
    assert [one["schedule_id"] for one in found] == ["to-oslo"]
    assert cli("schedule", "list", "--query", "Town =", code=3) == "" and "column" in cli.said
    assert cli("start", *_ECHO, "--search-attribute", "Town=5", code=3) == "" and "Keyword" in cli.said


def test_times_are_listed_before_and_behind_a_creation(cli: Cli) -> None:
    window = ("--from", "2026-01-05T00:00:00Z", "--until", "2026-01-07T00:00:00Z")
    expected = ["2026-01-05T15:00:00Z", "2026-01-06T15:00:00Z"]
    tokyo = ("--cron", "@daily", "--time-zone", "Asia/Tokyo")
    assert cli.json("schedule", "list-matching-times", *tokyo, *window) == expected
    cli("schedule", "create", "tokyo", *tokyo, *_ECHO)
    assert cli.json("schedule", "list-matching-times", "tokyo", *window) == expected
    often = ("schedule", "list-matching-times", "--interval", "1s", *window, "--limit", "3")
    assert len(cli(*often).splitlines()) == 3 and "--limit 6" in cli.said
    assert cli("schedule", "list-matching-times", "--interval", "300d", *window) == ""
    assert "None from 2026-01-05 00:00:00.000Z to 2026-01-07 00:00:00.000Z; --from and --until" in cli.said
    later = ("schedule", "list-matching-times", "--cron", "@daily", "--start-time", "2099-03-01T00:00:00Z")
    assert cli.json(*later)[::7] == ["2099-03-01T00:00:00Z", "2099-03-08T00:00:00Z"]
    assert cli.json(*later[:4], "--from", "2099-03-01T00:00:00Z")[::7] == cli.json(*later)[::7]


def test_mistakes(cli: Cli) -> None:
    create = ("schedule", "create", "never", *_ECHO)
    for arguments, code, said in (
        ((*create, "--cron", "99 2 * * *"), 3, "minute 99 is not in 0 to 59"),
        ((*create, "--calendar", '{"hours": "1"}'), 2, "a calendar has no 'hours'"),
        ((*create, "--time-zone", "Europe/Atlantis", "--cron", "@daily"), 3, "Atlantis"),
        ((*create, "5"), 2, "create never --type Echo -t echo --workflow-id 5"),
        (("schedule", "create", "never", "--cron", "@daily"), 2, "--type"),
        (("schedule", "pause", "never"), 2, "stepwell schedule toggle SCHEDULE_ID --pause"),
        (("schedule", "toggle", "never"), 2, "--pause or --unpause"),
        (("schedule", "list-matching-times"), 2, "give the id of a schedule, or times"),
        (("schedule", "backfill", "never", "--start-time", "now", "--end-time", "-1d"), 2, "exchange them"),
        (("schedule", "trigger", "never"), 3, "no such schedule"),
        (("schedule", "delete", "never"), 3, "no such schedule"),
    ):
        assert cli(*arguments, code=code) == ""
        assert said in cli.said.replace(f"--address {cli.address} ", ""), cli.said
    assert cli.json("schedule", "list", "-n", "nowhere") == []
    cli("schedule", "create", "by-hand", *_ECHO)
    assert "only when it is triggered" in cli.said and "only when it is triggered" in cli(
        "schedule", "describe", "by-hand"
    )


def test_a_file_without_owner_is_opened_for_it(cli: Cli, server: tuple[str, Path], tmp_path: Path) -> None:
    """What a file that is only looked at does not have."""
    looks = (("schedule", "list"), ("namespace", "list"), ("batch", "list"), ("search-attribute", "list"))
    for words in (*looks, ("task-queue", "describe", "echo")):
        cli(*words, address=f"sqlite:///{tmp_path}/own.db")
        assert cli(*words, address=f"sqlite:///{server[1]}", code=3) == "" and "in use by process" in cli.said
