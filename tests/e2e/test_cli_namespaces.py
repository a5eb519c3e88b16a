"""Namespaces and their search attributes from the terminal."""

from stepwell.api.namespaces import NamespaceLimits
from stepwell.cli.namespace_limits import _LIMITS

from tests.support.cli import Cli, cli, server

__all__ = ["cli", "server"]


def test_a_namespace_from_its_registration_to_its_deprecation(cli: Cli) -> None:
    words = ("--description", "All orders", "--owner-email", "a@b.example", "--retention", "30d", "--data", "team=red")
    assert cli.json("namespace", "register", "sales", *words, "--requests-per-second", "500")["namespace"] == "sales"
    assert cli("namespace", "register", "sales", code=3) == "" and "sales" in cli.said
    told = cli("namespace", "describe", "sales")
    for part in ("All orders", "a@b.example", "30d", "REGISTERED", "requests per second  500", "team  red"):
        assert part in told
    changed = cli.json("namespace", "update", "sales", "--starts-per-second", "5.5", "--data", "team=")
    assert changed["limits"] == {"requests_per_second": 500.0, "starts_per_second": 5.5}
    assert changed["description"] == "All orders" and "data" not in changed
    changed = cli.json("namespace", "update", "sales", "--requests-per-second", "none", "--max-payload-bytes", "2048")
    assert changed["limits"] == {"starts_per_second": 5.5, "max_payload_bytes": 2048}
    assert "Callers allowed   none" in cli("namespace", "describe", "sales")
    allowed = cli.json("namespace", "update", "sales", "--caller-allowed", "web", "--caller-allowed", "billing")
    assert allowed["callers_allowed"] == ["billing", "web"]
    assert "Callers allowed   billing, web" in cli("namespace", "update", "sales", "--data", "team=blue")
    assert "callers_allowed" not in cli.json("namespace", "update", "sales", "--caller-allowed", "")
    assert cli("list", "--archived", "-n", "sales", code=3) == "" and "--archival" in cli.said
    assert "Archival          on" in cli("namespace", "update", "sales", "--archival")
    assert cli.json("list", "--archived", "--status", "completed", "-n", "sales") == []
    assert "archival" not in cli.json("namespace", "update", "sales", "--no-archival")
    cli("namespace", "deprecate", "sales")
    assert ["sales", "DEPRECATED"] in [line.split()[:2] for line in cli("namespace", "list").splitlines()]
    assert "default" in [info["name"] for info in cli.json("namespace", "list")]
    assert cli("start", "--type", "Echo", "-t", "echo", "-n", "sales", code=3) == "" and "deprecated" in cli.said


def test_search_attributes_are_added_and_keep_their_type(cli: Cli) -> None:
    cli("namespace", "register", "found", "--search-attribute", "City=keyword")
    assert cli("search-attribute", "add", "-n", "found", "Paid=Bool", "Sum=double") == "Added to found: Paid, Sum.\n"
    assert cli.json("search-attribute", "list", "-n", "found") == {"City": "Keyword", "Paid": "Bool", "Sum": "Double"}
    assert "KeywordList" not in cli("search-attribute", "list", "-n", "found")
    assert cli("search-attribute", "add", "-n", "found", "Paid=Int", code=3) == "" and "Bool" in cli.said
    assert cli("search-attribute", "remove", "-n", "found", "Paid") == "Removed from found: Paid.\n"
    assert cli.json("search-attribute", "list", "-n", "found") == {"City": "Keyword", "Sum": "Double"}
    assert cli("search-attribute", "remove", "-n", "found", "Paid", code=2) == "" and "found: Paid." in cli.said


def test_mistakes(cli: Cli) -> None:
    for arguments, said in (
        (("namespace", "update", "default", "--starts-per-second", "lots"), "neither a number nor none"),
        (("namespace", "update", "default", "--concurrent-long-polls", "1.5"), "a whole number"),
        (("namespace", "register", "x", "--data", "team"), "--data 'team' is no name=value pair"),
        (("search-attribute", "add", "City=Text2"), "types are Text, Keyword"),
        (("namespace", "update", "default"), "no option says what to change"),
        (("namespace", "create", "x"), "namespace register NAME"),
        (("search-attribute", "add", "City"), "'City' is no NAME=TYPE, such as City=Keyword; types are Text"),
        (("namespace", "register", "x", "words"), "namespace register x --description words"),
    ):
        assert cli(*arguments, code=2) == ""
        assert said in cli.said.replace("--address " + cli.address + " ", ""), cli.said
    for command in (("describe", "nobody"), ("update", "nobody", "--description", "x"), ("deprecate", "nobody")):
        assert cli("namespace", *command, code=3) == "" and "not registered" in cli.said


def test_every_limit_is_an_option() -> None:
    assert list(_LIMITS) == list(NamespaceLimits.__struct_fields__)
