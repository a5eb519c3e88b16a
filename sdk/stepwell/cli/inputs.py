"""JSON from the command line: each value is one argument, passed on byte for byte as it was written (WC-33)."""

import difflib
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from ..api.payloads import ENCODING, ENCODING_JSON, ENCODING_NULL, Payload, Payloads
from ..search_attributes import SearchAttributeIndexedValueType, SearchAttributeKey
from .troubles import Usage

STDIN = "-"
_WHITESPACE = " \t\r\n"
_SHOWN = 40


def read_inputs(values: tuple[str, ...], files: tuple[str, ...], option: str = "--input") -> Payloads:
    """The arguments given by ``option`` (each one JSON value) or by ``--input-file`` (each any number of them).

    ``-`` in either means standard input. Raises :class:`Usage` with line and column of what is no JSON.
    """
    if values and files:
        raise Usage("--input and --input-file are both given, which leaves their order open; use one of them")
    if (values + files).count(STDIN) > 1:
        raise Usage("standard input (-) can be read only once")
    payloads: list[Payload] = []
    for number, value in enumerate(values, 1):
        if value == STDIN:
            payloads += _several(_stdin(), "standard input")
        else:
            payloads.append(json_payload(value, f"{option} {number}" if len(values) > 1 else option))
    for name in files:
        text, source = (_stdin(), "standard input") if name == STDIN else (_file(name), name)
        payloads += _several(text, source)
    return tuple(payloads)


def json_payload(text: str, source: str) -> Payload:
    """The one JSON value in ``text``; ``source`` is named when there is none."""
    found = _values(text, source)
    if len(found) != 1:
        if not found:
            raise Usage(f"{source} is empty, which is no JSON value; write '\"\"' for an empty string, or leave it out")
        end = text.index(found[0]) + len(found[0])
        _refuse(text, end, source, "there is more behind the value; repeat the option for each value")
    return found_payload(found[0])


def found_payload(text: str) -> Payload:
    if text == "null":
        return Payload(metadata={ENCODING: ENCODING_NULL})
    return Payload(metadata={ENCODING: ENCODING_JSON}, data=text.encode())


def _several(text: str, source: str) -> list[Payload]:
    found = _values(text, source)
    if not found:
        raise Usage(f"{source} holds no JSON value; leave the option out when there are no arguments")
    return [found_payload(value) for value in found]


def _values(text: str, source: str) -> list[str]:
    """The JSON values in ``text``, one behind the other, as they were written."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    found: list[str] = []
    start = _skip(text, 0)
    while start < len(text):
        try:
            parsed, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            _refuse(text, error.pos, source, _lower(error.msg.removesuffix(" at")))
        except _Constant as error:
            _refuse(text, text.find(str(error), start), source, f"{error} is no JSON")
        except ValueError:
            _refuse(text, start, source, "it has a number with too many digits")
        except RecursionError:
            _refuse(text, start, source, "the value is nested too deeply")
        if found and text[start - 1] not in _WHITESPACE:
            _refuse(text, start, source, "expecting white space between two values")
        value = text[start:end]
        _check_strictly(value, parsed, text, start, source)
        found.append(value)
        start = _skip(text, end)
    return found


def _check_strictly(value: str, parsed: Any, text: str, start: int, source: str) -> None:
    """Python's parser takes what a stricter one refuses, such as half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        _refuse(text.encode(errors="replace").decode(), start + error.start, source, "this is not UTF-8")
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        _refuse(text, start, source, "a \\u escape in it is half of a pair, which is not text,")
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse(text, start, source, _lower(str(error)))


class _Constant(ValueError):
    """NaN or an infinity, which Python's parser would take."""


def _no_constant(name: str) -> NoReturn:
    raise _Constant(name)


def _refuse(text: str, position: int, source: str, reason: str) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    start = text.rfind("\n", 0, position) + 1
    column = position - start + 1
    shown = text[start:].split("\n", 1)[0]
    left = max(0, position - start - _SHOWN)
    excerpt = shown[left : position - start + _SHOWN]
    marker = " " * (position - start - left) + "^"
    raise Usage(
        f"{source} is not JSON: {reason} at line {line}, column {column}\n  {excerpt}\n  {marker}{_hint(text, source)}"
    ) from None


def _hint(text: str, source: str) -> str:
    if not source.startswith("--"):
        return ""
    words = source.split()
    named = len(words) > 1 and not words[1].isdecimal()
    option = f"{words[0]} {words[1]}=" if named else f"{words[0]} "
    word = text.strip()
    if word and not any(character in word for character in "{}[]\"'\n"):
        quoted = json.dumps(word, ensure_ascii=False)
        return f"\nHint: text needs JSON's double quotes, inside the shell's single ones: {option}'{quoted}'"
    return (
        "\nHint: put single quotes around the whole value, so that the shell leaves its double quotes alone: "
        f"""{option}'{{"key": "value"}}'"""
    )


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _skip(text: str, start: int) -> int:
    while start < len(text) and text[start] in _WHITESPACE:
        start += 1
    return start


def _file(name: str) -> str:
    try:
        return _text(Path(name).read_bytes(), name)
    except OSError as error:
        raise Usage(f"--input-file {name} cannot be read: {error.strerror}") from error


def _stdin() -> str:
    return _text(sys.stdin.buffer.read(), "standard input")


def _text(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Usage(f"{source} is not UTF-8 at byte {error.start}; save it as UTF-8") from error


def parse_pairs(pairs: tuple[str, ...], option: str) -> dict[str, Payload]:
    """``name=JSON`` pairs, such as those of ``--memo``."""
    found: dict[str, Payload] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise Usage(f"{option} {pair!r} is no name=JSON pair, such as {option} customer='\"joe\"'")
        found[name] = json_payload(value, f"{option} {name}")
    return found


def parse_attributes(pairs: tuple[str, ...], option: str) -> dict[str, Payload]:
    """``name=JSON`` or ``name:Type=JSON`` pairs as search attributes; without a type, the one that the value shows."""
    found: dict[str, Payload] = {}
    for name, payload in parse_pairs(pairs, option).items():
        value = msgspec.json.decode(payload.data) if payload.data else None
        plain, colon, said = name.rpartition(":")
        kinds = {kind.value.lower(): kind for kind in SearchAttributeIndexedValueType}
        kind = kinds.get(said.lower()) if colon else None
        if plain and kind is None and (near := difflib.get_close_matches(said.lower(), kinds, n=1)):
            raise Usage(f"{option} {name}: {said!r} is no type; did you mean {plain}:{kinds[near[0]].value}?")
        name = plain if kind is not None else name
        kind = kind or _shown_type(name, value, option)
        try:
            if kind is SearchAttributeIndexedValueType.DATETIME:
                value = msgspec.convert(value, datetime)
            elif kind is SearchAttributeIndexedValueType.DOUBLE and type(value) is int:
                value = float(value)
            found[name] = SearchAttributeKey[Any](name, kind).value_set(value).payload()
        except (TypeError, ValueError) as error:
            raise Usage(f"{option} {name}: {error}") from None
    return found


def _shown_type(name: str, value: Any, option: str) -> SearchAttributeIndexedValueType:
    match value:
        case bool():
            return SearchAttributeIndexedValueType.BOOL
        case int():
            return SearchAttributeIndexedValueType.INT
        case float():
            return SearchAttributeIndexedValueType.DOUBLE
        case str():
            return SearchAttributeIndexedValueType.KEYWORD
        case list():
            return SearchAttributeIndexedValueType.KEYWORD_LIST
        case _:
            raise Usage(f"{option} {name} is neither text, number, true, false nor a list of texts")


def value_of(payload: Payload) -> Any:
    """A payload as a JSON-ready value; what is not JSON is shown as its parts."""
    encoding = payload.metadata.get(ENCODING, "")
    if encoding == ENCODING_NULL:
        return None
    if encoding == ENCODING_JSON:
        try:
            msgspec.json.decode(payload.data)
        except (msgspec.DecodeError, RecursionError):
            return {"metadata": payload.metadata, "data": payload.data}
        return msgspec.Raw(payload.data)
    return {"metadata": payload.metadata, "data": payload.data}
