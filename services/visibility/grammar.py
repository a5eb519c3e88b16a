"""From text to a tree: the grammar of the filter language, and its syntax errors with position and way out.

A text stands in single or double quotes; such a quote inside it is doubled, and every other character, a backslash too,
is itself. A name that is not letters, digits, ``_`` and ``.``, or is a word of the language, stands in backticks.
"""

from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from stepwell.api.errors import InvalidArgument

from .query import FIELD

_GRAMMAR = r"""
start: condition? group? order? limit?
?condition: conjunction (_OR conjunction)*      -> any_of
?conjunction: negation (_AND negation)*         -> all_of
?negation: _NOT negation                        -> negated
    | "(" condition ")"                         -> brackets
    | predicate
?predicate: name OPERATOR value                 -> compare
    | name _IN "(" value ("," value)* ")"       -> in_values
    | name _NOT _IN "(" value ("," value)* ")"  -> not_in_values
    | name _BETWEEN value _AND value            -> between
    | name _NOT _BETWEEN value _AND value       -> not_between
    | name _IS _NULL                            -> is_null
    | name _IS _NOT _NULL                       -> is_not_null
    | name _STARTS_WITH value                   -> starts_with
    | name _NOT _STARTS_WITH value              -> not_starts_with
group: _GROUP _BY name ("," name)*
order: _ORDER _BY key ("," key)*
key: name (ASC | DESC)?
limit: LIMIT value?
?name: NAME | QUOTED_NAME
?value: TEXT | NUMBER | TRUE | FALSE
_AND: "AND"i
_OR: "OR"i
_NOT: "NOT"i
_IN: "IN"i
_BETWEEN: "BETWEEN"i
_IS: "IS"i
_NULL: "NULL"i
_STARTS_WITH: "STARTS_WITH"i
_GROUP: "GROUP"i
_ORDER: "ORDER"i
_BY: "BY"i
ASC: "ASC"i
DESC: "DESC"i
LIMIT: "LIMIT"i
TRUE: "TRUE"i
FALSE: "FALSE"i
OPERATOR: "<=" | ">=" | "!=" | "<>" | "=" | "<" | ">"
NAME: /[^\W\d][\w.]*/i
QUOTED_NAME: /`([^`]|``)+`/
TEXT: /'([^']|'')*'|"([^"]|"")*"/
NUMBER: /[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?/i
%ignore /[ \t\r\n]+/
"""

_WORDS = {
    "NAME": "the name of an attribute",
    "QUOTED_NAME": "",
    "OPERATOR": "a comparison (= != < > <= >=)",
    "TEXT": "a text in quotes",
    "NUMBER": "a number",
    "TRUE": "true",
    "FALSE": "false",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "LIMIT": "",
    "$END": "the end of the query",
}
_FEW = 12
_PATTERNS = frozenset({"LIKE", "ILIKE", "CONTAINS", "MATCHES", "REGEXP"})


@cache
def _parser() -> Lark:
    """Made once a process."""
    return Lark(_GRAMMAR, parser="lalr", maybe_placeholders=False, propagate_positions=True)


def tree_of(text: str) -> Tree[Token]:
    """Raises InvalidArgument with the position of what does not fit, what would, and how to say it."""
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise _refusal(text, error) from None


def position(token: Token) -> str:
    return f"line {token.line}, column {token.column}"


def refuse(where: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"query, {where}: {problem}", field=FIELD)


def _refusal(text: str, error: UnexpectedInput) -> InvalidArgument:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        where = position(error.token)
        if (hint := _hint(text, error.token)) is not None:
            return refuse(where, hint)
        if "TEXT" in error.expected and error.token.type == "NAME":
            return refuse(where, f"a text stands in quotes: '{error.token}'; expected {_expected(error.expected)}")
        return refuse(where, f"expected {_expected(error.expected)}, found {str(error.token)[:60]!r}")
    if isinstance(error, UnexpectedCharacters):
        found, where = error.char, f"line {error.line}, column {error.column}"
        if found in "'\"`":
            return refuse(where, f"what begins here has no closing {found}; one that is a part of it is written twice")
        return refuse(where, f"expected {_expected(error.allowed or set())}, found {found!r}")
    expected = error.expected if isinstance(error, UnexpectedToken | UnexpectedEOF) else []
    lines = text.split("\n")
    where = f"line {len(lines)}, column {len(lines[-1]) + 1}"
    return refuse(where, f"expected {_expected(set(expected))}, found the end of the query")


def _hint(text: str, found: Token) -> str | None:
    """For what other languages have."""
    if found.type == "NAME" and found.upper() in _PATTERNS:
        return f"there is no {found.upper()}; STARTS_WITH 'abc' finds what begins so"
    if found == "=" and found.start_pos and text[found.start_pos - 1] == "=":
        return "equal is one =, as in City = 'Rome'"
    return None


def _expected(terminals: set[str] | list[str]) -> str:
    known = (_WORDS.get(terminal, terminal.strip("_")) for terminal in sorted(terminals))
    words = [word for word in known if word]
    if len(words) > _FEW:
        words = [*words[:_FEW], "…"]
    return " or ".join(words) if words else "nothing more"
