"""What a function imports before its first call, which waits for it: nothing that only other processes need."""

import subprocess
import sys

import pytest

ENTRY_POINTS = ("aws_frontend", "aws_feed", "aws_timer_tick", "aws_timers")
ELSEWHERE = (
    "aws_xray_sdk",
    "cryptography",
    "pydantic",
    "sqlite3",
    "starlette",
    "stepwell.client",
    "stepwell.worker",
    "stepwell_server.adapters.embedded",
    "stepwell_server.entrypoints.hosting",
    "stepwell_server.frontend.asgi",
    "uvicorn",
    "uvloop",
)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_a_function_imports_nothing_that_only_others_need(name: str) -> None:
    source = f"import sys, stepwell_server.entrypoints.{name}; print(*sys.modules, sep='\\n')"
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=True)
    imported = set(ended.stdout.split())
    assert f"stepwell_server.entrypoints.{name}" in imported
    assert imported.isdisjoint(ELSEWHERE)
