"""The Python program in a completion, found without compiling anything.

The answer is the last complete fenced block (```python, or a fence without a language) that defines
the function asked for, else the last complete one; inside the last <answer> block if that holds
any. Without a fence it is the whole text: a program, or the rest of the prompt's unfinished
function. Which reading is Python is for the process to find out that may crash on it: `programs`
gives them in the order in which to try.
"""

import re
import textwrap
from dataclasses import dataclass

from rewards.extraction import first_turn, last_tag

LONGEST = 100_000  # characters of a program
LANGUAGES = ("", "python", "py", "python3")
HELPERS = ("def ", "async def ", "class ", "import ", "from ", "@", "#", ")", "]", "}", '"""')
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^`\n]*")


@dataclass(frozen=True)
class Fences:
    """complete: the Python blocks that are closed. before: the text before a closing fence that was
    never opened, since the prompt ends with the opening one. open: whether the last one is open."""

    complete: list[str]
    before: str | None
    open: bool


def programs(completion: str, starter: str = "", entry_point: str | None = None) -> list[str]:
    """Readings of the completion as a whole program, the first that compiles counts.

    starter: the prompt's code; it comes before the answer, which may define its functions anew.
    """
    text = first_turn(completion)
    inside = last_tag(text, "answer")
    if inside is not None and inside.strip():
        text = inside
    fences = _fences(text)
    if fences.complete:
        own = [block for block in fences.complete if _defines(block, entry_point)]
        codes = (own or fences.complete)[-1:]
    elif fences.before is not None:
        codes = [fences.before]
    elif fences.open:
        return []  # cut off
    else:
        codes = [text]
    whole = [reading for code in codes for reading in _readings(code, starter, entry_point)]
    return [program for program in dict.fromkeys(whole) if len(program) <= LONGEST]


def _fences(text: str) -> Fences:
    complete: list[str] = []
    before: str | None = None
    lines = text.split("\n")
    opened: tuple[str, str, int] | None = None  # the mark, the language, the first line inside
    for i, line in enumerate(lines):
        mark = FENCE.fullmatch(line.rstrip("\r"))
        if opened is None:
            if mark is not None:
                opened = (mark[1], mark[2].lower(), i + 1)
                if not mark[2] and not complete and before is None and i:
                    before = "\n".join(lines[:i])
            continue
        closing, language, first = opened
        end = line.rstrip()
        if end.endswith(closing) and (mark is None or not mark[2]):
            if language in LANGUAGES:
                last = end[: -len(closing)].rstrip("`~")
                complete.append("\n".join([*lines[first:i], *([last] if last.strip() else [])]))
            opened = None
    return Fences(complete, before if opened is not None and not complete else None, bool(opened))


def _defines(code: str, name: str | None) -> bool:
    if name is None:
        return True
    word = re.escape(name)
    return re.search(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{word}\b", code, re.M) is not None


def _readings(code: str, starter: str, entry_point: str | None) -> list[str]:
    loose = textwrap.dedent(code)
    if starter and entry_point is not None and not _defines(code, entry_point):
        return [starter + _body(code, HELPERS), starter + _body(code, ())]
    lead = f"{starter}\n" if starter else ""
    return [lead + reading for reading in (code, loose)]


def _body(code: str, more: tuple[str, ...]) -> str:
    """The rest of a function, and the unindented lines after it that begin with one of `more`."""
    kept: list[str] = []
    for line in code.split("\n"):
        if kept and line.strip() and not line.startswith((" ", "\t", *more)):
            break
        kept.append(line)
    return "\n".join(kept)
