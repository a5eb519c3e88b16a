"""A process is called gone only when that is certain."""

import os
import subprocess
import sys

import msgspec
import pytest
from stepwell.api.common import ProcessIdentity
from stepwell.identity import process_identity

from stepwell_server.history.liveness import SystemLiveness, machine_id, process_started

pytestmark = pytest.mark.skipif(not machine_id(), reason="this system does not tell two boots apart")


@pytest.fixture
def mine() -> ProcessIdentity:
    identity = process_identity()
    assert identity is not None
    return identity


def test_what_a_worker_says_of_itself_is_what_the_engine_finds(mine: ProcessIdentity) -> None:
    assert mine.machine == machine_id()
    assert mine.started == process_started(os.getpid())
    assert not SystemLiveness().is_gone(mine)
    assert not SystemLiveness().can_tell(mine)


def test_a_dead_process_is_gone_even_before_its_parent_notices(mine: ProcessIdentity) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = msgspec.structs.replace(mine, pid=process.pid, started=process_started(process.pid) or "")
    liveness = SystemLiveness()
    assert liveness.can_tell(identity) and not liveness.is_gone(identity)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert liveness.is_gone(identity)
    process.communicate()
    assert liveness.is_gone(identity)


def test_a_reused_pid_is_another_process(mine: ProcessIdentity) -> None:
    assert SystemLiveness().is_gone(msgspec.structs.replace(mine, started="1"))


def test_other_machines_and_unknown_processes_are_not_judged(mine: ProcessIdentity) -> None:
    elsewhere = msgspec.structs.replace(mine, machine="another boot/pid:[1]", pid=2**22 + 1)
    for identity in (None, elsewhere, msgspec.structs.replace(mine, machine="")):
        assert not SystemLiveness().is_gone(identity)
        assert not SystemLiveness().can_tell(identity)
