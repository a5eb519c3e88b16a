"""An environment of Python for a suite: the library in the version that its tests were written for, and their tools."""

import hashlib
import subprocess
import sys
from pathlib import Path

from .suites import Suite


def ensure(suite: Suite, folder: Path) -> Path:
    """Its Python; made once, and again when what the suite needs has changed."""
    python = folder / "bin" / "python"
    stamp = folder / f".stepwell-exam-{suite.name}"
    wanted = hashlib.sha256("\n".join(suite.requirements).encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *suite.requirements], check=True)
    stamp.write_text(wanted)
    return python
