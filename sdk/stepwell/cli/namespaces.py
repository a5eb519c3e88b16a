"""``stepwell namespace``: register namespaces, change them, let them go; ``stepwell search-attribute``: their types."""

import asyncio
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click
import msgspec
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.namespaces import NamespaceInfo, NamespaceLimits
from ..search_attributes import SearchAttributeIndexedValueType
from .connection import Engine, Target, run
from .grammar import Group
from .namespace_limits import changed, limit_options
from .options import DURATION, engine_options, target_options
from .output import console, key_values, print_json, print_table, section, table
from .text import safe, span_text, time_text
from .troubles import Refused, Usage

F = TypeVar("F", bound=Callable[..., Any])

TYPES = tuple(kind.value for kind in SearchAttributeIndexedValueType)
_OTHERS = {True: "registered by the first start that has them", False: "refused"}
"""What becomes of search attributes that nobody registered."""


@click.group(cls=Group, meant={"create": "register NAME"})
def namespace() -> None:
    """Register namespaces, change their retention and limits, let them go."""


def _text_options(command: F) -> F:
    for option in reversed(
        (
            click.option("--description", help="What it is for."),
            click.option("--owner-email", help="Whom to ask."),
            click.option("--retention", type=DURATION, help="How long closed runs are kept, such as 30d; 1h at least."),
            click.option("--data", multiple=True, metavar="NAME=TEXT", help="A note; repeatable."),
            click.option(
                "--search-attribute",
                "attributes",
                multiple=True,
                metavar="NAME=TYPE",
                help=f"Repeatable; types are {', '.join(TYPES)}.",
            ),
            click.option(
                "--implicit-search-attributes/--no-implicit-search-attributes",
                "implicit",
                default=None,
                help="Whether a start with an attribute that nobody registered registers it.",
            ),
            click.option(
                "--archival/--no-archival",
                default=None,
                help="Whether workflows that close are archived, to be found when their retention is over.",
            ),
            click.option(
                "--caller-allowed",
                "callers",
                multiple=True,
                metavar="NAMESPACE",
                help="Whose workflows may start, signal, cancel and await workflows of this one ('*': all). "
                "Repeatable; an update sets all of them anew, and --caller-allowed '' allows nobody.",
            ),
        )
    ):
        command = option(command)
    return command


_NAME = click.argument("name", metavar="NAME")


@namespace.command(spare=("--description",))
@_NAME
@_text_options
@limit_options
@engine_options
def register(
    target: Target,
    name: str,
    description: str | None,
    owner_email: str | None,
    retention: timedelta | None,
    data: tuple[str, ...],
    attributes: tuple[str, ...],
    implicit: bool | None,
    archival: bool | None,
    callers: tuple[str, ...],
    **limits: Any,
) -> None:
    """Register a namespace. Its limits are those of one server process; without one the installation's holds."""
    request = r.RegisterNamespaceRequest(
        namespace=name,
        description=description or "",
        owner_email=owner_email or "",
        data=_pairs(data, "--data"),
        retention=retention,
        limits=changed(NamespaceLimits(), limits),
        search_attributes=_types(attributes),
        implicit_search_attributes=implicit is not False,
        callers_allowed=_callers(callers),
        request_id=uuid.uuid4().hex,
        archival=bool(archival),
    )

    async def command(engine: Engine) -> None:
        response = await engine.call(o.REGISTER_NAMESPACE, request)
        _say(target, {"namespace": name, "id": response.id}, f"Namespace {name} is registered.")

    run(target, command)


@namespace.command()
@_NAME
@engine_options
def describe(target: Target, name: str) -> None:
    """Show a namespace: its state, retention, limits and search attributes."""

    async def command(engine: Engine) -> None:
        _print(target, await _info(engine, name))

    run(target, command)


@namespace.command(spare=("--description",))
@_NAME
@_text_options
@limit_options
@engine_options
def update(
    target: Target,
    name: str,
    description: str | None,
    owner_email: str | None,
    retention: timedelta | None,
    data: tuple[str, ...],
    attributes: tuple[str, ...],
    implicit: bool | None,
    archival: bool | None,
    callers: tuple[str, ...],
    **limits: Any,
) -> None:
    """Change a namespace; what is left out stays.

    A limit of none is the installation's again, and a note with an empty value is gone.
    """
    pairs, types = _pairs(data, "--data"), _types(attributes)
    given = any(value is not None for value in limits.values())
    others = (description, owner_email, retention, implicit, archival)
    if not given and not pairs and not types and not callers and all(value is None for value in others):
        raise Usage("no option says what to change; see --help")

    async def command(engine: Engine) -> None:
        request = r.UpdateNamespaceRequest(
            namespace=name,
            description=description,
            owner_email=owner_email,
            data=pairs or None,
            retention=retention,
            limits=changed((await _info(engine, name)).limits, limits) if given else None,
            search_attributes=types or None,
            implicit_search_attributes=implicit,
            callers_allowed=_callers(callers) if callers else None,
            archival=archival,
        )
        _print(target, (await engine.call(o.UPDATE_NAMESPACE, request)).info)

    run(target, command)


@namespace.command()
@_NAME
@engine_options
def deprecate(target: Target, name: str) -> None:
    """Let nothing start in a namespace any more; what runs goes on."""

    async def command(engine: Engine) -> None:
        await engine.call(o.DEPRECATE_NAMESPACE, r.DeprecateNamespaceRequest(namespace=name))
        _say(target, {"namespace": name}, f"Nothing starts in {name} any more; what runs goes on.")

    run(target, command)


@namespace.command()
@_NAME
@click.option("--force", is_flag=True, help="End and delete what runs in it.")
@click.option("--delay", type=DURATION, help="How long to wait with the data; nothing brings it back.")
@click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask.")
@engine_options
def delete(target: Target, name: str, force: bool, delay: timedelta | None, sure: bool) -> None:
    """Delete a namespace and all that is in it; refused until it is deprecated, and while workflows run in it."""
    request = r.DeleteNamespaceRequest(namespace=name, force=force, delay=delay)

    async def command(engine: Engine) -> None:
        info = await _info(engine, name)
        if not sure:
            if not sys.stdin.isatty():
                raise Usage("nobody is here to be asked; --yes goes on")
            what = f"Delete namespace {safe(info.name)}, its histories, also archived ones, and its schedules for good?"
            if not await asyncio.to_thread(click.confirm, what, err=True):
                raise Refused("nothing was done")
        response = await engine.call(o.DELETE_NAMESPACE, request)
        said = {"namespace": name, "delete_after": response.delete_after}
        _say(target, said, f"Namespace {name} is deleted; what is in it goes in the background.")

    run(target, command)


@namespace.command(name="list")
@engine_options
def list_(target: Target) -> None:
    """List namespaces by name."""

    async def command(engine: Engine) -> None:
        found: list[NamespaceInfo] = []
        token = b""
        while True:
            page = await engine.call(o.LIST_NAMESPACES, r.ListNamespacesRequest(next_page_token=token))
            found += page.namespaces
            token = page.next_page_token
            if not token:
                break
        if target.as_json:
            print_json(found)
            return
        rows = table("NAME", "STATE", "RETENTION", "OWNER", "DESCRIPTION")
        for info in found:
            cells = (info.name, str(info.state), span_text(info.retention), info.owner_email, info.description)
            rows.add_row(*(Text(safe(cell)) for cell in cells))
        print_table(rows, console())

    run(target, command)


@click.group(cls=Group, name="search-attribute", meant={"create": "add NAME=TYPE", "register": "add NAME=TYPE"})
def search_attribute() -> None:
    """Register, remove and list the search attributes of a namespace."""


@search_attribute.command(name="add")
@click.argument("attributes", nargs=-1, required=True, metavar="NAME=TYPE...")
@target_options
def add_attributes(target: Target, attributes: tuple[str, ...]) -> None:
    """Register search attributes, such as City=Keyword. To change the type of one, remove it first.

    Types are Text, Keyword, Int, Double, Bool, Datetime and KeywordList.
    """
    types = _types(attributes)

    async def command(engine: Engine) -> None:
        request = r.UpdateNamespaceRequest(namespace=target.namespace, search_attributes=types)
        await engine.call(o.UPDATE_NAMESPACE, request)
        names = ", ".join(types)
        _say(target, {"namespace": target.namespace, "added": types}, f"Added to {target.namespace}: {names}.")

    run(target, command)


@search_attribute.command(name="remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@target_options
def remove_attributes(target: Target, names: tuple[str, ...]) -> None:
    """Remove search attributes, such as City. Workflows keep their values, but are found by these no more."""

    async def command(engine: Engine) -> None:
        there = (await _info(engine, target.namespace)).search_attributes
        if missing := ", ".join(name for name in names if name not in there):
            raise click.UsageError(f"These are no search attributes of {target.namespace}: {missing}.")
        asked = r.UpdateNamespaceRequest(namespace=target.namespace, remove_search_attributes=names)
        await engine.call(o.UPDATE_NAMESPACE, asked)
        said = f"Removed from {target.namespace}: {', '.join(names)}."
        _say(target, {"namespace": target.namespace, "removed": names}, said)

    run(target, command)


@search_attribute.command(name="list")
@target_options
def list_attributes(target: Target) -> None:
    """List the search attributes that a namespace has registered."""

    async def command(engine: Engine) -> None:
        info = await _info(engine, target.namespace)
        if target.as_json:
            print_json(dict(info.search_attributes))
            return
        if not info.search_attributes:
            click.echo(safe(f"No search attributes in {target.namespace}."), err=True)
            return
        rows = table("NAME", "TYPE")
        for name, kind in sorted(info.search_attributes.items()):
            rows.add_row(Text(safe(name)), Text(safe(kind)))
        print_table(rows, console())

    run(target, command)


async def _info(engine: Engine, name: str) -> NamespaceInfo:
    return (await engine.call(o.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace=name))).info


def _pairs(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise Usage(f"{option} {pair!r} is no name=value pair")
        found[name] = value
    return found


def _callers(names: tuple[str, ...]) -> tuple[str, ...]:
    """An empty one stands for nobody."""
    return tuple(name for name in names if name)


def _types(pairs: tuple[str, ...]) -> dict[str, str]:
    """Types in any case."""
    by_lower = {kind.lower(): kind for kind in TYPES}
    found: dict[str, str] = {}
    for pair in pairs:
        name, _, kind = pair.partition("=")
        if not name or not kind:
            raise Usage(
                f"search attribute {pair!r} is no NAME=TYPE, such as City=Keyword; types are {', '.join(TYPES)}"
            )
        if kind.lower() not in by_lower:
            raise Usage(f"search attribute {name!r} has type {kind!r}; types are {', '.join(TYPES)}")
        found[name] = by_lower[kind.lower()]
    return found


def _say(target: Target, said: dict[str, Any], words: str) -> None:
    if target.as_json:
        print_json(said)
    else:
        click.echo(safe(words))


def _print(target: Target, info: NamespaceInfo) -> None:
    if target.as_json:
        print_json(info)
        return
    shown = console()
    key_values(
        (
            ("Namespace", info.name),
            ("Id", info.id),
            ("State", str(info.state)),
            ("Description", info.description),
            ("Owner", info.owner_email),
            ("Retention", span_text(info.retention)),
            ("Archival", "on" if info.archival else "off"),
            ("Created", time_text(info.created_at)),
            ("Other attributes", _OTHERS[info.implicit_search_attributes]),
            ("Callers allowed", ", ".join(info.callers_allowed) or "none"),
        ),
        shown,
    )
    limits = msgspec.structs.asdict(info.limits)
    set_limits = ((name.replace("_", " "), f"{value:g}") for name, value in limits.items() if value is not None)
    section("Limits of one server process", ("WHAT", "LIMIT"), set_limits, shown)
    section("Search attributes", ("NAME", "TYPE"), sorted(info.search_attributes.items()), shown)
    section("Notes", ("NAME", "TEXT"), sorted(info.data.items()), shown)
    failures = [(each.execution.workflow_id, each.execution.run_id, each.message) for each in info.removal_failures]
    section(f"Cannot be deleted: {info.unremoved}", ("WORKFLOW", "RUN", "WHY"), failures, shown)
