"""``stepwell config``: the file of profiles, which clients in Python read as well (:mod:`stepwell.envconfig`)."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.text import Text

from ..envconfig import (
    DEFAULT_PROFILE,
    PROFILE,
    VARIABLES,
    ClientConfig,
    ConfigError,
    config_file,
    from_text,
)
from .grammar import Group
from .options import output_option, profile_option
from .output import console, print_json, print_table, table
from .profile_file import changed, without, write
from .settings import effective
from .text import safe
from .troubles import Refused, Usage


@click.group(cls=Group)
def config() -> None:
    """Keep addresses and namespaces as profiles, for this command and for clients in Python.

    A profile has address, namespace, sign (whether requests are signed) and identity. Credentials are not kept:
    requests are signed with the usual chain of AWS. STEPWELL_CONFIG names another file.
    """


@config.command(name="list")
@output_option
def list_(output: str) -> None:
    """List the profiles. * is the one that is used without --profile."""
    found = _loaded()
    active = os.environ.get(PROFILE) or DEFAULT_PROFILE
    path = config_file()
    if output == "json":
        print_json({"file": str(path), "active": active, "profiles": found.to_dict()})
        return
    if not found.profiles:
        click.echo(f"No profiles in {path}; `stepwell config set address URL` makes one.", err=True)
        return
    rows = table("", "PROFILE", *(key.upper() for key in VARIABLES))
    for name, profile in found.profiles.items():
        said = profile.to_dict()
        cells = ("*" if name == active else "", name, *(_shown(said.get(key, "")) for key in VARIABLES))
        rows.add_row(*(Text(safe(cell)) for cell in cells))
    print_table(rows, console())
    click.echo(f"They are in {path}.", err=True)


@config.command()
@click.argument("key", metavar="KEY", required=False, type=click.Choice(list(VARIABLES)))
@profile_option
@output_option
def get(key: str | None, profile: str | None, output: str) -> None:
    """Print what holds, from the environment, the profile or by default; KEY alone, or all with their sources.

    KEY is address, namespace, sign or identity."""
    with _troubles():
        found = effective(profile)
    if key is not None and key not in found:
        raise Refused(f"{key} is not set; `stepwell config set {key} VALUE` sets it")
    if output == "json":
        print_json(
            {name: {"value": one.value, "source": one.source} for name, one in found.items() if key in (None, name)}
        )
    elif key is not None:
        click.echo(safe(_shown(found[key].value)))
    else:
        rows = table("KEY", "VALUE", "FROM")
        for name, one in found.items():
            rows.add_row(name, Text(safe(_shown(one.value))), Text(safe(one.source)))
        print_table(rows, console())


@config.command(name="set")
@click.argument("key", shell_complete=lambda ctx, param, word: [k for k in VARIABLES if k.startswith(word)])
@click.argument("value")
@profile_option
def set_(key: str, value: str, profile: str | None) -> None:
    """Keep a setting, such as address http://127.0.0.1:7400."""
    with _troubles():
        kept = from_text(key, value, key)
        name = _name(profile)
        path = _changed(lambda text: changed(text, name, key, kept))
    click.echo(safe(f"Profile {name} has {key} {_shown(kept)} now ({path})."))


@config.command()
@click.argument("key", metavar="KEY", required=False, type=click.Choice(list(VARIABLES)))
@profile_option
def delete(key: str | None, profile: str | None) -> None:
    """Forget a setting; without KEY the whole profile, which --profile then has to name.

    KEY is address, namespace, sign or identity."""
    if key is None and profile is None:
        raise Usage("say which: a KEY of the profile, or --profile NAME for all of that profile")
    name = _name(profile)
    there = _loaded().profiles.get(name)
    if there is None or (key is not None and key not in there.to_dict()):
        raise Refused(f"profile {name} has no {key}" if there is not None else f"there is no profile {name!r}")
    with _troubles():
        path = _changed(lambda text: without(text, name) if key is None else changed(text, name, key, None))
    click.echo(
        safe(f"Profile {name} is gone" if key is None else f"Profile {name} has no {key} any more") + f" ({path})."
    )


def _name(profile: str | None) -> str:
    name = profile or os.environ.get(PROFILE) or DEFAULT_PROFILE
    if not name.isprintable() or "'" in name or '"' in name or "\\" in name:
        raise Usage("the name of a profile is printable text without quotes and backslashes")
    return name


def _changed(change: Callable[[str], str]) -> Path:
    """The file, which has been changed."""
    path = config_file()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    ClientConfig.load(config_source=path if text else "")
    write(path, change(text))
    return path


def _loaded() -> ClientConfig:
    with _troubles():
        return ClientConfig.load()


@contextmanager
def _troubles() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise Usage(str(error)) from error


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
