"""Which engine a command talks to: an option goes before the environment, that before the profile, then defaults."""

import os
from dataclasses import dataclass, replace

import click

from ..envconfig import (
    DEFAULT_ADDRESS,
    DEFAULT_NAMESPACE,
    PROFILE,
    VARIABLES,
    ClientConfig,
    ClientConfigProfile,
    ConfigError,
    resolved,
)
from ..transport.address import check_address
from .troubles import Usage

IDENTITY = "stepwell.identity"
"""Where the command's context keeps the name that a profile gives to who works here."""

DEFAULTS = {"address": DEFAULT_ADDRESS, "namespace": DEFAULT_NAMESPACE}


@dataclass(frozen=True, slots=True)
class Setting:
    value: str | bool
    source: str
    """Where it is from, for people."""


def settings(address: str | None, namespace: str | None, profile: str | None) -> ClientConfigProfile:
    """What holds for a command that was given these, defaults filled in. Raises :class:`Usage`."""
    try:
        said = resolved(ClientConfig.load().named(profile, os.environ), os.environ, address)
    except ConfigError as error:
        raise Usage(str(error)) from error
    if address is not None:
        try:
            check_address(address, said.sign)
        except ValueError as error:
            raise Usage(f"--address {error}") from error
    context = click.get_current_context(silent=True)
    if said.identity is not None and context is not None:
        context.meta[IDENTITY] = said.identity
    return replace(
        said,
        address=said.address or DEFAULT_ADDRESS,
        namespace=(said.namespace or DEFAULT_NAMESPACE) if namespace is None else namespace,
    )


def effective(profile: str | None) -> dict[str, Setting]:
    """Every setting that somebody says, and where it is from. Raises :class:`ConfigError`."""
    said = ClientConfigProfile.load(profile).to_dict()
    found = {name: Setting(value, "default") for name, value in DEFAULTS.items()}
    in_file = ClientConfig.load().named(profile, os.environ).to_dict()
    name = profile or os.environ.get(PROFILE) or "default"
    for key, value in said.items():
        if os.environ.get(VARIABLES[key]):
            found[key] = Setting(value, VARIABLES[key])
        elif key in in_file:
            found[key] = Setting(value, f"profile {name}")
    return {key: found[key] for key in VARIABLES if key in found}
