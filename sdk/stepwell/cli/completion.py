"""``stepwell completion``: what a shell has to read so that it completes commands, options and their values."""

from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from ..envconfig import ClientConfig, ConfigError
from .grammar import Command

PROGRAM = "stepwell"
VARIABLE = "_STEPWELL_COMPLETE"
_INSTALL = {
    "bash": "echo 'eval \"$(stepwell completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(stepwell completion zsh)\"' >> ~/.zshrc",
    "fish": "stepwell completion fish > ~/.config/fish/completions/stepwell.fish",
}


@click.command(
    cls=Command,
    epilog="\b\nOnce and for all:\n" + "\n".join(f"  {shell:<5} {line}" for shell, line in _INSTALL.items()),
)
@click.argument("shell", metavar="SHELL", type=click.Choice(list(_INSTALL)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script by which a shell completes commands, options and profiles; nothing asks an engine."""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(ShellComplete.source(script))  # that of bash would run bash, and warn of what it finds


def complete_profile(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """The names in the file."""
    try:
        names = ClientConfig.load().profiles
    except ConfigError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
