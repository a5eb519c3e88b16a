"""The tables over the unions of requests, commands and tasks: nothing is forgotten, or meant in two ways."""

from typing import get_args

from stepwell.api.commands import Command

from stepwell_server.history.machines.commands import COMMANDS, SIZES
from stepwell_server.history.requests import Request
from stepwell_server.history.step import OPENING, REQUESTS
from stepwell_server.history.task_processor import NOT_RUN, TASKS
from stepwell_server.history.tasks import Task


def test_every_request_has_its_function():
    assert OPENING.keys() | REQUESTS.keys() == set(get_args(Request))
    assert not OPENING.keys() & REQUESTS.keys()


def test_every_command_has_its_function():
    assert COMMANDS.keys() == set(get_args(Command))
    assert SIZES.keys() <= COMMANDS.keys()


def test_every_task_is_run_or_needs_no_running():
    assert TASKS.keys() | NOT_RUN == set(get_args(Task))
    assert not TASKS.keys() & NOT_RUN
