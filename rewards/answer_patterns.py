"""The answer by a pattern of the user's choice: ####, the last number, a JSON field, a regex.

A regular expression of the user's own may backtrack without end, which nothing in this process
could stop. It is matched in a worker process, and one that takes longer than its limit has found
nothing.
"""

import functools
import json
import re
from typing import Any, cast

from rewards.worker_pool import WorkerPool

NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?+(?:/\d++)?+", re.ASCII)
HASH = re.compile(r"####[ \t]*+([^\n]*+)")
LONGEST = 20_000  # characters at the end of the text, in which JSON or a regex is looked for
MOST_OBJECTS = 200  # places where one may begin

POOL = WorkerPool("rewards.answer_patterns:last_match", workers=1, limit=1.0)

PATTERN_STYLES = ("hash", "last_number", "json", "regex")


def by_pattern(text: str, style: str, argument: str) -> str | None:
    """The last match, or None. style: one of PATTERN_STYLES; argument: the field or the regex."""
    if style == "json":
        return _json_field(text[-LONGEST:], argument)
    if style == "regex":
        return _by_regex(argument, text[-LONGEST:])
    return last_match(HASH if style == "hash" else NUMBER, text)


@functools.lru_cache(maxsize=1024)  # the grader asks, and then the monitor
def _by_regex(pattern: str, text: str) -> str | None:
    (outcome,) = POOL.run([(pattern, text)])
    return outcome.value if outcome.status == "ok" else None


def last_match(pattern: str | re.Pattern[str], text: str) -> str | None:
    """Of the last match the group `answer`, or the first group, or all of it."""
    compiled = re.compile(pattern)
    last = None
    for match in compiled.finditer(text):
        last = match
    if last is None:
        return None
    group = "answer" if "answer" in compiled.groupindex else min(compiled.groups, 1)
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
