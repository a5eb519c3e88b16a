"""``stepwell config``: one setting at a time, with everything else in the file as it was."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from stepwell.cli import main
from stepwell.cli.connection import Target, identity
from stepwell.cli.options import target_options
from stepwell.cli.profile_file import changed, without
from stepwell.envconfig import ConfigError

FILE = """\
# mine
[profile.default]  # at home
address = "http://127.0.0.1:7411"  # this one

# theirs
[profile."far away"]
namespace = 'orders'
"""

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """A command's standard output, or what it says when it ends with ``code``."""
    monkeypatch.setenv("STEPWELL_CONFIG", str(tmp_path / "new" / "stepwell.toml"))
    for name in ("ADDRESS", "NAMESPACE", "SIGN", "IDENTITY", "PROFILE"):
        monkeypatch.delenv(f"STEPWELL_{name}", raising=False)

    def command(*arguments: str, code: int = 0) -> str:
        ended: object = 0
        try:
            main(["config", *arguments])
        except SystemExit as exit:
            ended = exit.code
        said = capfdbinary.readouterr()
        assert ended == code, said
        return (said.err if code else said.out).decode()

    return command


def test_a_setting_is_kept_shown_and_forgotten(run: Run, tmp_path: Path) -> None:
    assert run("get", "address", code=2).count("STEPWELL_CONFIG") == 1
    assert "has address http://127.0.0.1:7411 now" in run("set", "address", "http://127.0.0.1:7411")
    run("set", "sign", "true", "--profile", "prod")
    run("set", "address", "https://stepwell.example", "--profile", "prod")
    file = tmp_path / "new" / "stepwell.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [found.name for found in file.parent.iterdir()] == ["stepwell.toml"]
    assert json.loads(run("list", "-o", "json"))["profiles"] == {
        "default": {"address": "http://127.0.0.1:7411"},
        "prod": {"sign": True, "address": "https://stepwell.example"},
    }
    assert [line.split() for line in run("list").splitlines()][1:] == [
        ["*", "default", "http://127.0.0.1:7411"],
        ["prod", "https://stepwell.example", "true"],
    ]
    assert run("get", "sign", "--profile", "prod") == "true\n"
    run("delete", "sign", "--profile", "prod")
    assert "sign is not set" in run("get", "sign", "--profile", "prod", code=3)
    run("delete", "--profile", "prod")
    assert run("get", "address", "--profile", "prod", code=2).startswith("Error: there is no profile 'prod'")


def test_get_says_where_a_value_is_from(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("set", "address", "http://127.0.0.1:7411", "--profile", "mine")
    monkeypatch.setenv("STEPWELL_PROFILE", "mine")
    monkeypatch.setenv("STEPWELL_IDENTITY", "joe")
    assert json.loads(run("get", "-o", "json")) == {
        "address": {"value": "http://127.0.0.1:7411", "source": "profile mine"},
        "namespace": {"value": "default", "source": "default"},
        "identity": {"value": "joe", "source": "STEPWELL_IDENTITY"},
    }
    assert "STEPWELL_IDENTITY" in run("get")


def test_what_is_refused_changes_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "new" / "stepwell.toml"
    assert "did you mean 'address'" in run("set", "adress", "http://x", code=2)
    assert "http://host:port" in run("set", "address", "x:7400", code=2)
    hushed = run("set", "api_key", "hush", code=2) + run("set", "address", "https://a:hush@x", code=2)
    assert "hush" not in hushed and not file.exists()
    run("set", "address", "http://far.example", "--profile", "far")
    before = file.read_bytes()
    assert "https" in run("set", "sign", "true", "--profile", "far", code=2)
    assert "without quotes" in run("set", "address", "http://x", "--profile", 'a"b', code=2)
    assert "has no identity" in run("delete", "identity", "--profile", "far", code=3)
    assert "no profile 'other'" in run("delete", "--profile", "other", code=3)
    assert "say which" in run("delete", code=2)
    assert file.read_bytes() == before
    file.write_text("[profile.a\n", "utf-8")
    assert "not TOML" in run("set", "address", "http://x", code=2) and file.read_text("utf-8") == "[profile.a\n"


def test_the_rest_of_the_file_stays_as_it_was() -> None:
    assert changed(FILE, "far away", "sign", True) == FILE + "sign = true\n"
    assert changed(FILE, "default", "namespace", 'a"\\b') == FILE.replace(
        "# this one\n", '# this one\nnamespace = "a\\"\\\\b"\n'
    )
    assert changed(FILE, "default", "address", "http://x") == FILE.replace(
        '"http://127.0.0.1:7411"  # this one', '"http://x"'
    )
    assert changed(FILE, "new one", "address", "http://x") == FILE + '\n[profile."new one"]\naddress = "http://x"\n'
    assert without(FILE, "default") == "# mine\n\n# theirs\n[profile.\"far away\"]\nnamespace = 'orders'\n"


@pytest.mark.parametrize(
    "text",
    ['profile.default.address = "http://x"\n', 'profile = {default = {address = "http://x"}}\n'],
)
def test_what_is_written_in_another_way_is_left_to_its_author(text: str) -> None:
    for change in (lambda: changed(text, "default", "address", "http://y"), lambda: without(text, "default")):
        with pytest.raises(ConfigError, match="edit the file"):
            change()


@pytest.mark.parametrize(
    ("arguments", "env", "expected"),
    [
        ([], {}, ("http://127.0.0.1:7411", "orders", "joe")),
        ([], {"STEPWELL_ADDRESS": "http://env"}, ("http://env", "orders", "joe")),
        (["--address", "http://flag"], {"STEPWELL_ADDRESS": "http://env"}, ("http://flag", "orders", "joe")),
        (["-n", "flag", "--profile", "other"], {}, ("http://other", "flag", None)),
        (["--profile", "other"], {"STEPWELL_PROFILE": "mine"}, ("http://other", "default", None)),
    ],
)
def test_an_option_goes_before_the_environment_and_that_before_the_profile(
    run: Run, arguments: list[str], env: dict[str, str], expected: tuple[str, str, str | None], tmp_path: Path
) -> None:
    run("set", "address", "http://127.0.0.1:7411", "--profile", "mine")
    run("set", "namespace", "orders", "--profile", "mine")
    run("set", "identity", "joe", "--profile", "mine")
    run("set", "address", "http://other", "--profile", "other")
    seen: list[tuple[Target, str]] = []

    @click.command()
    @target_options
    def command(target: Target) -> None:
        seen.append((target, identity()))

    CliRunner().invoke(command, arguments, env={"STEPWELL_PROFILE": "mine", **env}, catch_exceptions=False)
    [(target, by)] = seen
    assert (target.address, target.namespace) == expected[:2]
    assert by == expected[2] or (expected[2] is None and by.startswith("cli:"))
