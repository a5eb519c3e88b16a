"""Command lines of the server's commands: what is wrong with one is said as the rest of ``stepwell`` says it."""

import argparse
import re
from typing import NoReturn

USAGE = 2


class Parser(argparse.ArgumentParser):
    """Of one command; of its own commands too, which argparse makes of the same class."""

    def format_help(self) -> str:
        rest = super().format_help().partition("\n\n")[2]
        head = f"Usage: {self.prog} {_shape(self)}"
        return re.sub(r"^(options|positional arguments):$", _title, f"{head}\n\n{rest}", flags=re.MULTILINE)

    def error(self, message: str) -> NoReturn:
        """Three lines in place of all options, which --help shows."""
        usage = f"Usage: {self.prog} {_shape(self)}\nTry '{self.prog} --help' for help.\n\n"
        self.exit(USAGE, f"{usage}Error: {worded(message)}\n")


def _title(found: re.Match[str]) -> str:
    return "Options:" if found[1] == "options" else "Arguments:"


def _shape(parser: argparse.ArgumentParser) -> str:
    places = [str(action.metavar or action.dest.upper()) for action in parser._actions if not action.option_strings]
    return " ".join(["[OPTIONS]", *places])


_WORDS = (
    (r"argument (-\S+): expected one argument", r"Option '\1' requires an argument."),
    (r"argument COMMAND: invalid choice: '(.*?)' \(choose from (.*)\)", r"No such command '\1'. Use one of \2."),
    (
        r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)",
        r"Invalid value for '\1': '\2' is not one of \3.",
    ),
    (r"argument (\S+): invalid (\w+) value: '(.*)'", r"Invalid value for '\1': '\3' is not a valid \2."),
    (r"argument (\S+): not allowed with argument (\S+)", r"'\1' does not go with '\2'; use one of them."),
    (r"argument (\S+): (.*)", r"Invalid value for '\1': \2."),
    (r"unrecognized arguments: (-\S+).*", r"No such option '\1'."),
    (r"unrecognized arguments: (\S+).*", r"Got unexpected extra argument ('\1')."),
    (r"the following arguments are required: (\S+?)(,.*)?", r"Missing argument '\1'."),
)


def worded(message: str) -> str:
    """What argparse says, in the words of the commands that click parses."""
    for pattern, words in _WORDS:
        found = re.fullmatch(pattern, message, re.DOTALL)
        if found:
            return found.expand(words).replace("..", ".")
    return f"{message[:1].upper()}{message[1:].rstrip('.')}."
