"""Profiles and environment variables: what goes before what, and what is refused with its place and remedy (DX-06)."""

from pathlib import Path
from typing import Any

import pytest
from stepwell.client import Client
from stepwell.envconfig import ClientConfig, ClientConfigProfile, ConfigError, config_file

FILE = """\
# mine
[profile.default]
address = "http://127.0.0.1:7411"

[profile.prod]
address = "https://stepwell.example"
namespace = "orders"
sign = true
identity = "joe"
"""


def loaded(profile: str | None = None, **env: str) -> dict[str, Any]:
    return ClientConfigProfile.load(profile, config_source=FILE, override_env_vars=env).to_dict()


def test_the_environment_goes_before_the_profile_and_that_before_defaults() -> None:
    assert loaded() == {"address": "http://127.0.0.1:7411"}
    prod = {"address": "https://stepwell.example", "namespace": "orders", "sign": True, "identity": "joe"}
    assert loaded("prod") == prod == loaded(STEPWELL_PROFILE="prod")
    assert loaded("default", STEPWELL_PROFILE="prod") == loaded()
    assert loaded("prod", STEPWELL_NAMESPACE="mine", STEPWELL_IDENTITY="") == {**prod, "namespace": "mine"}
    assert loaded("prod", STEPWELL_SIGN="no")["sign"] is False


def test_whether_to_sign_goes_with_the_address() -> None:
    local = loaded("prod", STEPWELL_ADDRESS="sqlite:///orders.db")
    assert local == {"address": "sqlite:///orders.db", "namespace": "orders", "identity": "joe"}
    assert loaded("prod", STEPWELL_ADDRESS="https://other", STEPWELL_SIGN="true")["sign"] is True


def test_arguments_of_connect(tmp_path: Path) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(FILE, encoding="utf-8")
    assert ClientConfig.load_client_connect_config("prod", config_file=file, override_env_vars={}) == {
        "url": "https://stepwell.example",
        "namespace": "orders",
        "sign": True,
        "identity": "joe",
    }
    nothing = {"url": "http://127.0.0.1:7400", "namespace": "default"}
    assert ClientConfig.load_client_connect_config(disable_file=True, disable_env=True) == nothing
    assert ClientConfig.from_dict(ClientConfig.load(config_source=FILE).to_dict()).profiles["prod"].sign is True


def test_places_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_file({"STEPWELL_CONFIG": "/etc/mine.toml"}) == Path("/etc/mine.toml")
    monkeypatch.setattr("sys.platform", "linux")
    assert config_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/stepwell/stepwell.toml")
    assert config_file({}) == Path("~/.config/stepwell/stepwell.toml").expanduser()
    monkeypatch.setattr("sys.platform", "darwin")
    assert config_file({}) == Path("~/Library/Application Support/stepwell/stepwell.toml").expanduser()
    monkeypatch.setattr("sys.platform", "win32")
    assert config_file({"APPDATA": "/a"}) == Path("/a/stepwell/stepwell.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[profile.a]\nadress = "http://x"\n', ["line 2", "'adress'", "did you mean 'address'"]),
        ('[profile.a]\n\napi_key = "hush"\n', ["line 3", "credentials are not kept", "AWS_PROFILE"]),
        ('[profiles.a]\naddress = "http://x"\n', ["'profiles' is not known", "[profile.default]"]),
        ('[profile.a]\nsign = "yes"\n', ["line 2", "true or false"]),
        ("[profile.a]\nnamespace = 7\n", ["line 2", "namespace is text"]),
        ('[profile.a]\nnamespace = ""\n', ["line 2", "1 to 255 bytes"]),
        ('[profile.a]\nidentity = "a\\u001b[2J"\n', ["line 2", "control character"]),
        ('[profile.a]\naddress = "localhost:7400"\n', ["line 2", "http://host:port"]),
        ('[profile.a]\naddress = "https://joe:hush@x"\n', ["line 2", "user name"]),
        ('[profile.a]\naddress = "http://far.example"\nsign = true\n', ["line 2", "https"]),
        ('[profile]\nprod = "http://x"\n', ["line 2", "[profile.prod]"]),
        ("profile = 3\n", ["[profile.default]"]),
        ("[profile.a\n", ["not TOML", "line 1"]),
    ],
)
def test_what_cannot_be_used_is_refused_with_place_and_remedy(tmp_path: Path, text: str, said: list[str]) -> None:
    file = tmp_path / "stepwell.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        ClientConfig.load(config_source=file)
    for part in (str(file), *said):
        assert part in str(refused.value)
    assert "hush" not in str(refused.value)


def test_profiles_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no profile 'pord'.*it has: default, prod\..*config set --profile pord"):
        loaded("pord")
    with pytest.raises(ConfigError, match="from STEPWELL_PROFILE"):
        loaded(STEPWELL_PROFILE="pord")
    with pytest.raises(ConfigError, match=r"STEPWELL_CONFIG.*is not there"):
        ClientConfig.load(override_env_vars={"STEPWELL_CONFIG": str(tmp_path / "none.toml")})
    assert (
        ClientConfig.load(override_env_vars={"XDG_CONFIG_HOME": str(tmp_path), "APPDATA": str(tmp_path)}).profiles == {}
    )
    (tmp_path / "latin").write_bytes(b'[profile.a]\nnamespace = "\xe9"\n')
    with pytest.raises(ConfigError, match="UTF-8"):
        ClientConfig.load(config_source=tmp_path / "latin")


@pytest.mark.parametrize(
    ("name", "value"),
    [("ADDRESS", "ftp://me:hush@x"), ("SIGN", "hush"), ("NAMESPACE", "hush\n"), ("ADDRESS", "http://\n")],
)
def test_variables_that_cannot_be_used_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"STEPWELL_{name}") as refused:
        loaded(**{f"STEPWELL_{name}": value})
    assert "hush" not in str(refused.value)


async def test_a_client_without_arguments_connects_to_what_the_profile_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stepwell.toml"
    file.write_text('[profile.mine]\naddress = "sqlite://:memory:"\nnamespace = "orders"\nidentity = "joe"\n', "utf-8")
    monkeypatch.setenv("STEPWELL_CONFIG", str(file))
    for name in ("ADDRESS", "NAMESPACE", "SIGN", "IDENTITY"):
        monkeypatch.delenv(f"STEPWELL_{name}", raising=False)
    async with await Client.connect(profile="mine", namespace="given") as client:
        assert (client.namespace, client.identity) == ("given", "joe")
    monkeypatch.setenv("STEPWELL_PROFILE", "mine")
    async with await Client.connect() as client:
        assert client.namespace == "orders"
    async with await Client.connect("sqlite://:memory:") as client:
        assert client.namespace == "default" and client.identity != "joe"
