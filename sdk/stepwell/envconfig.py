"""Where clients and the command line connect to, from a TOML file of profiles and from the environment (DX-06).

The file, ``stepwell/stepwell.toml`` in the user's folder for configuration, or what ``STEPWELL_CONFIG`` names::

    [profile.default]
    address = "http://127.0.0.1:7400"

    [profile.prod]
    address = "https://stepwell.example"
    namespace = "orders"
    sign = true

``STEPWELL_PROFILE`` says which profile is used, ``default`` without it. ``STEPWELL_ADDRESS``, ``STEPWELL_NAMESPACE``,
``STEPWELL_SIGN`` and ``STEPWELL_IDENTITY`` go before what the profile says; a variable that is empty counts as not set.
Credentials are in neither: requests are signed with the usual chain of AWS.
"""

import difflib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from .api.limits import MAX_ID_BYTES, MAX_NAMESPACE_BYTES
from .transport.address import check_address

__all__ = ["ClientConfig", "ClientConfigProfile", "ClientConnectConfig", "ConfigError"]

CONFIG, PROFILE = "STEPWELL_CONFIG", "STEPWELL_PROFILE"
VARIABLES = {
    "address": "STEPWELL_ADDRESS",
    "namespace": "STEPWELL_NAMESPACE",
    "sign": "STEPWELL_SIGN",
    "identity": "STEPWELL_IDENTITY",
}
DEFAULT_PROFILE = "default"
DEFAULT_ADDRESS = "http://127.0.0.1:7400"
DEFAULT_NAMESPACE = "default"

_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class ConfigError(ValueError):
    """A setting that cannot be used: says where it is, what is wrong, and the way out. Values are not repeated."""


class ClientConnectConfig(TypedDict, total=False):
    """Arguments of ``Client.connect``."""

    url: str
    namespace: str
    sign: bool
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfigProfile:
    """One way to connect; None is what nobody has said."""

    address: str | None = None
    namespace: str | None = None
    sign: bool | None = None
    """Whether requests are signed; None: those to addresses of AWS are."""

    identity: str | None = None

    @staticmethod
    def load(
        profile: str | None = None,
        *,
        config_source: Path | str | bytes | None = None,
        disable_file: bool = False,
        disable_env: bool = False,
        override_env_vars: Mapping[str, str] | None = None,
    ) -> "ClientConfigProfile":
        """The profile of this name, else of ``STEPWELL_PROFILE``, else ``default``, with what the environment says
        instead. ``config_source``: a path, or what such a file would hold; ``override_env_vars``: in place of the
        process's environment. Raises :class:`ConfigError`."""
        env: Mapping[str, str] = {} if disable_env else os.environ if override_env_vars is None else override_env_vars
        file = ClientConfig() if disable_file else ClientConfig.load(config_source=config_source, override_env_vars=env)
        return resolved(file.named(profile, env), env)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "ClientConfigProfile":
        """Raises :class:`ConfigError`."""
        return _profile(values, lambda key: "the profile")

    def to_dict(self) -> dict[str, Any]:
        """What is said."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) is not None}

    def to_client_connect_config(self) -> ClientConnectConfig:
        """For ``Client.connect(**…)``: what nobody has said has its default."""
        made = ClientConnectConfig(url=self.address or DEFAULT_ADDRESS, namespace=self.namespace or DEFAULT_NAMESPACE)
        if self.sign is not None:
            made["sign"] = self.sign
        if self.identity is not None:
            made["identity"] = self.identity
        return made


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """All profiles of a file."""

    profiles: Mapping[str, ClientConfigProfile] = field(default_factory=dict)
    source: str = ""
    """The file they are from; empty for none."""

    @staticmethod
    def load(
        *, config_source: Path | str | bytes | None = None, override_env_vars: Mapping[str, str] | None = None
    ) -> "ClientConfig":
        """All profiles, without what the environment changes in them. Raises :class:`ConfigError`."""
        if isinstance(config_source, str | bytes):
            return _parse(config_source, "the configuration given")
        env = os.environ if override_env_vars is None else override_env_vars
        path = config_source or config_file(env)
        try:
            return _parse(path.read_bytes(), str(path))
        except FileNotFoundError:
            if path == _usual_file(env):
                return ClientConfig()
            by = f" (from {CONFIG})" if config_source is None else ""
            raise ConfigError(
                f"{path}{by} is not there; correct the path, or write it by `stepwell config set`"
            ) from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error

    @staticmethod
    def load_client_connect_config(
        profile: str | None = None,
        *,
        config_file: Path | str | None = None,
        disable_file: bool = False,
        disable_env: bool = False,
        override_env_vars: Mapping[str, str] | None = None,
    ) -> ClientConnectConfig:
        """What ``Client.connect`` takes: ``await Client.connect(**ClientConfig.load_client_connect_config("prod"))``.
        As :meth:`ClientConfigProfile.load` otherwise."""
        loaded = ClientConfigProfile.load(
            profile,
            config_source=None if config_file is None else Path(config_file),
            disable_file=disable_file,
            disable_env=disable_env,
            override_env_vars=override_env_vars,
        )
        return loaded.to_client_connect_config()

    @staticmethod
    def from_dict(values: Mapping[str, Mapping[str, Any]]) -> "ClientConfig":
        """From a mapping of names to profiles, as :meth:`to_dict` makes it. Raises :class:`ConfigError`."""
        return ClientConfig({name: ClientConfigProfile.from_dict(value) for name, value in values.items()})

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return {name: profile.to_dict() for name, profile in self.profiles.items()}

    def named(self, profile: str | None, env: Mapping[str, str]) -> ClientConfigProfile:
        """This profile, else the one that ``STEPWELL_PROFILE`` in ``env`` names, else ``default``, which may be
        missing. Raises :class:`ConfigError`."""
        name = profile or env.get(PROFILE) or DEFAULT_PROFILE
        found = self.profiles.get(name)
        if found is None and name != DEFAULT_PROFILE:
            by = "" if profile else f" (from {PROFILE})"
            there = ", ".join(sorted(self.profiles)) or "none"
            raise ConfigError(
                f"there is no profile {name!r}{by} in {self.source or config_file(env)}; it has: {there}. "
                f"`stepwell config set --profile {name} address URL` makes it"
            )
        return found or ClientConfigProfile()


def config_file(env: Mapping[str, str] | None = None) -> Path:
    """The file of profiles, whether it is there or not: ``STEPWELL_CONFIG``, else the platform's usual place."""
    env = os.environ if env is None else env
    named = env.get(CONFIG)
    return Path(named).expanduser() if named else _usual_file(env)


def _usual_file(env: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        base = Path(env.get("APPDATA") or "~/AppData/Roaming")
    elif sys.platform == "darwin":
        base = Path("~/Library/Application Support")
    else:
        base = Path(env.get("XDG_CONFIG_HOME") or "~/.config")
    try:
        return base.expanduser() / "stepwell" / "stepwell.toml"
    except RuntimeError:  # a user without a home, as in containers
        return base / "stepwell" / "stepwell.toml"


def resolved(profile: ClientConfigProfile, env: Mapping[str, str], address: str | None = None) -> ClientConfigProfile:
    """``profile`` with what ``env`` says instead, and this address when one is given. Whether to sign goes with the
    address: another one leaves that of the profile behind. Raises :class:`ConfigError`."""
    said = {name: from_text(name, env[variable], variable) for name, variable in VARIABLES.items() if env.get(variable)}
    if address is not None:
        said["address"] = address
    kept = profile.to_dict()
    if said.get("address", profile.address) != profile.address:
        kept.pop("sign", None)
    made = ClientConfigProfile(**{**kept, **said})
    if address is None and said:
        _check_together(made, VARIABLES["address"] if "address" in said else "the environment and the profile")
    return made


def _parse(data: str | bytes, source: str) -> ClientConfig:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        values = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}; correct it there") from None

    def place(table: tuple[str, ...], key: str) -> str:
        line = line_of(text, table, key)
        return f"{source}, line {line}" if line else source

    for key in values:
        if key != "profile":
            raise ConfigError(f"{place((), key)}: {key!r} is not known; profiles are tables such as [profile.default]")
    profiles = values.get("profile", {})
    if not isinstance(profiles, dict):
        raise ConfigError(f"{place((), 'profile')}: profiles are tables such as [profile.default]")
    made: dict[str, ClientConfigProfile] = {}
    for name, value in profiles.items():
        if not isinstance(value, dict):
            raise ConfigError(f"{place(('profile',), name)}: {name!r} is no table; write [profile.{name}] above it")
        made[name] = _profile(value, partial(place, ("profile", name)))
    return ClientConfig(made, source)


def line_of(text: str, table: tuple[str, ...], key: str) -> int:
    """The line of ``key`` in ``[table]`` as it is usually written; 0 when it is written in another way."""
    inside: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = table_of(line)
            if inside[: len(table) + 1] == (*table, key):
                return number
        elif inside == table and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
            return number
    return 0


def table_of(line: str) -> tuple[str, ...]:
    """The table that a line such as ``[profile.prod]`` begins."""
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        [(name, found)] = found.items()
        names.append(name)
    return tuple(names)


def _profile(values: Mapping[str, Any], place: Callable[[str], str]) -> ClientConfigProfile:
    for key, value in values.items():
        _check(key, value, place(key))
    made = ClientConfigProfile(**values)
    if made.address is not None:
        _check_together(made, place("address"))
    return made


def _check(key: str, value: Any, place: str) -> None:
    if key not in VARIABLES:
        raise ConfigError(f"{place}: {unknown_key(key)}")
    if key == "sign":
        if not isinstance(value, bool):
            raise ConfigError(f"{place}: sign is true or false (in the file without quotes)")
        return
    if not isinstance(value, str):
        raise ConfigError(f"{place}: {key} is text (in the file in double quotes)")
    limit = MAX_NAMESPACE_BYTES if key == "namespace" else MAX_ID_BYTES
    if key != "address" and not 0 < len(value.encode(errors="replace")) <= limit:
        raise ConfigError(f"{place}: {key} is text of 1 to {limit} bytes")
    if _CONTROL.search(value):
        raise ConfigError(f"{place}: {key} holds a control character; write it without")


def unknown_key(key: str) -> str:
    """What to say about a key that a profile does not have."""
    if any(word in key.lower() for word in ("key", "secret", "token", "password", "tls", "cert")):
        return (
            f"{key!r} is not known: credentials are not kept in profiles. Requests are signed (sign = true) with what "
            "AWS_PROFILE, AWS_ACCESS_KEY_ID or a role gives; SSL_CERT_FILE names authorities to trust"
        )
    close = difflib.get_close_matches(key, VARIABLES, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"a profile has {', '.join(VARIABLES)}"
    return f"{key!r} is not known; {meant}"


def _check_together(profile: ClientConfigProfile, place: str) -> None:
    try:
        check_address(profile.address or DEFAULT_ADDRESS, profile.sign)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from None


def from_text(name: str, text: str, place: str) -> Any:
    """The value of a setting that is given as text, checked. Raises :class:`ConfigError` naming ``place``."""
    value: Any = _BOOLEANS.get(text.lower(), text) if name == "sign" else text
    _check(name, value, place)
    if name == "address":
        _check_together(ClientConfigProfile(address=text), place)
    return value
