"""Changes one setting in the file of profiles, and leaves everything else in it, comments too, as it was written."""

import os
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from ..envconfig import ClientConfig, ConfigError, table_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def changed(text: str, profile: str, key: str, value: str | bool | None) -> str:
    """``text`` with this one setting; without it when ``value`` is None. Raises :class:`ConfigError` when the file is
    written in a way in which that is not one line."""
    wanted = tomllib.loads(text)
    values = wanted.setdefault("profile", {}).setdefault(profile, {})
    lines = text.splitlines()
    first, end = _table(lines, profile)
    at = next((n for n in range(first, end) if re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", lines[n])), None)
    if value is None:
        values.pop(key, None)
        if at is not None:
            del lines[at]
    else:
        values[key] = value
        line = f"{key} = {_literal(value)}"
        if at is not None:
            lines[at] = line
        elif first:
            lines.insert(_behind_settings(lines, first, end), line)
        else:
            lines += [*([""] if lines and lines[-1].strip() else []), f"[profile.{_key(profile)}]", line]
    return _proved("\n".join(lines) + "\n", wanted, f"{key} of profile {profile}")


def without(text: str, profile: str) -> str:
    """``text`` without this profile. Raises as :func:`changed` does."""
    wanted = tomllib.loads(text)
    wanted.get("profile", {}).pop(profile, None)
    lines = text.splitlines()
    first, end = _table(lines, profile)
    if first:  # comments below it may be those of what follows
        del lines[first - 1 : _behind_settings(lines, first, end)]
    return _proved("\n".join(lines).strip("\n") + "\n" if lines else "", wanted, f"profile {profile}")


def write(path: Path, text: str) -> None:
    """Whole or not at all, for nobody else to read. Raises :class:`ConfigError`."""
    path = path.resolve()  # a link, as tools for dotfiles make them, stays one
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; STEPWELL_CONFIG names another file") from error


def _table(lines: list[str], profile: str) -> tuple[int, int]:
    """The first line below the table's header and the line behind its last; twice 0 without the table."""
    heads = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    for number in heads:
        if table_of(lines[number]) == ("profile", profile):
            return number + 1, next((later for later in heads if later > number), len(lines))
    return 0, 0


def _behind_settings(lines: list[str], first: int, end: int) -> int:
    while end > first and not lines[end - 1].split("#")[0].strip():
        end -= 1
    return end


def _proved(text: str, wanted: dict[str, Any], what: str) -> str:
    """Read back, it has to be what was meant: the file may be written in a way that this does not know."""
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        read = None
    if read is None or _filled(read) != _filled(wanted):
        raise ConfigError(f"{what} is written in a way that only you can change; edit the file")
    ClientConfig.load(config_source=text)
    return text


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "profile": {name: value for name, value in values.get("profile", {}).items() if value}}


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _literal(name)


def _literal(value: str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
