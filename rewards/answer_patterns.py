"""The answer by a pattern of the user's choice: ####, the last number, a JSON field, a regex."""

import json
import re
from typing import Any, cast

NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?+(?:/\d++)?+", re.ASCII)
HASH = re.compile(r"####[ \t]*+([^\n]*+)")
LONGEST = 20_000  # characters at the end of the text, in which JSON or a regex is looked for
MOST_OBJECTS = 200  # places where one may begin

PATTERN_STYLES = ("hash", "last_number", "json", "regex")


def by_pattern(text: str, style: str, argument: str) -> str | None:
    """The last match, or None. style: one of PATTERN_STYLES; argument: the field or the regex."""
    if style == "json":
        return _json_field(text[-LONGEST:], argument)
    if style == "regex":
        pattern, text = re.compile(argument), text[-LONGEST:]
    else:
        pattern = HASH if style == "hash" else NUMBER
    last = None
    for match in pattern.finditer(text):
        last = match
    if last is None:
        return None
    group = "answer" if "answer" in pattern.groupindex else min(pattern.groups, 1)
    return None if last[group] is None else last[group].strip()


def _json_field(text: str, field: str) -> str | None:
    """The field of the last complete JSON object that has it; a number as it is written."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
    found: Any = None
    at = text.find("{")
    for _ in range(MOST_OBJECTS):
        if at < 0:
            break
        end = at + 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass
        else:
            found = cast("dict[str, Any]", value).get(field, found)
        at = text.find("{", end)
    return found if found is None or isinstance(found, str) else json.dumps(found)


def broken_json_field(text: str, field: str) -> str | None:
    """The last `"field": value` of an object that does not close, value a string or a number."""
    pattern = re.compile(
        rf'"{re.escape(field)}"\s{{0,9}}:\s{{0,9}}(?:"([^"\\\n]{{0,500}})"|([-+.\d]{{1,50}})(?=[\s,}}]))'
    )
    found = pattern.findall(text[-LONGEST:])
    return found[-1][0] or found[-1][1] if found else None
