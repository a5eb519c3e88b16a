"""Files stay short enough to be read in one go: about 400 lines. What grows past that has a seam to be found."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 410


def test_no_file_is_too_long() -> None:
    sources = [path for folder in ("services", "sdk", "tests") for path in (ROOT / folder).rglob("*.py")]
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}

    assert len(lines) > 200
    assert {name: count for name, count in lines.items() if count > LIMIT} == {}
