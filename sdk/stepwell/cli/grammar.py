"""Command classes that, of what a command does not take, say where it goes: the line that was meant, to be copied."""

import inspect
import shlex
from typing import Any, NoReturn

import click


class Command(click.Command):
    """``spare``: the options that further arguments are probably meant for, in order; the last one takes the rest."""

    def __init__(self, *args: Any, spare: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spare = spare

    def get_short_help_str(self, limit: int = 45) -> str:
        return _first_sentence(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.spare and not ctx.resilient_parsing:
            given, extra, _ = self.make_parser(ctx).parse_args(list(args))
            if extra:
                self._refuse(ctx, args, extra, given)
        return super().parse_args(ctx, args)

    def _refuse(self, ctx: click.Context, args: list[str], extra: list[str], given: dict[str, Any]) -> NoReturn:
        free = [name for name in self.spare[:-1] if not _is_given(self, name, given)] + [self.spare[-1]]
        line = list(args)
        for word in extra:  # from the right: an option's value may be the same word
            del line[len(line) - 1 - line[::-1].index(word)]
        for number, word in enumerate(extra):
            line += [free[min(number, len(free) - 1)], word]
        missing = [
            f"{max(one.opts, key=len)} {_stand_in(one)}"
            for one in self.params
            if isinstance(one, click.Option) and one.required and not given.get(one.name or "")
            if not set(one.opts) & set(line)
        ]
        meant = " ".join([ctx.command_path, *(shlex.quote(word) for word in line), *missing])
        too_many = "is one argument too many" if len(extra) == 1 else "are arguments too many"
        words = " ".join(shlex.quote(word) for word in extra)
        raise click.UsageError(f"{words} {too_many}: that goes into options. You probably mean:\n  {meant}", ctx)


def _stand_in(option: click.Option) -> str:
    """``TYPE`` for ``--type``."""
    return max(option.opts, key=len).lstrip("-").replace("-", "_").upper()


def _is_given(command: click.Command, name: str, given: dict[str, Any]) -> bool:
    return any(name in one.opts and given.get(one.name or "") for one in command.params)


class Group(click.Group):
    """A group of such commands and groups. ``meant``: names that people try, and what they mean here."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, meant: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.meant = meant or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        meant = self.meant.get(args[0])
        if meant is not None and not ctx.resilient_parsing:
            raise click.UsageError(
                f"No such command {args[0]!r}. You probably mean:\n  {ctx.command_path} {meant}", ctx
            )
        return super().resolve_command(ctx, args)

    def get_short_help_str(self, limit: int = 45) -> str:
        return _first_sentence(self)


def _first_sentence(command: click.Command) -> str:
    """Whole, over as many lines as it takes."""
    text = command.short_help or inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")
    end = text.find(". ")
    return (text if end < 0 else text[:end]).strip().removesuffix(".") + "."
