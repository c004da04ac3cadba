"""Who is a knight (tells the truth) and who is a knave (lies)? All right is 1, anything else 0.

An answer names everyone once, each with a role:

    (1) Zoey is a knight, (2) Oliver is a knave      Zoey and Mia are knights; Oliver is a knave
    Zoey: knight, Oliver: knave                      Knights: Zoey, Mia. Knaves: none.

It may hold nothing else: "not", "or" or "if", a name that is missing, unknown or said twice,
or one word that the grader does not know, and it is refused. Partial credit is not given: with two
people a guess gets half of the roles right.

If the row has the statements, any assignment that agrees with all of them is right (each person's
statement is true if and only if that person is a knight); else the stored solution is.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rewards.declared import declared_or_whole
from rewards.extraction import Mode, reads_answer
from rewards.knights_columns import Statement, names_of, read_solution, read_statements, roles_of

LONGEST = 2000  # characters, and PER_PERSON more for each person
PER_PERSON = 200
FILLER = frozenset(
    re.findall(
        r"\w+",
        """a an the is are was be must and both also so then therefore thus hence while whereas but
        as which means that we have conclude respectively only person name role identity""",
    )
)
MARKUP = re.compile(r"\\(?:text(?:bf|it|rm)?|mathrm|mathbf|quad|newline|item)(?![A-Za-z])|\\\\")
LABEL = r"[(\[]?\d{1,3}[)\].:]"
PUNCTUATION = r"[\s$,.;:()\[\]{}*_\-\u2013\u2014=>|\"'`\u2022#\u2192]+"


@reads_answer
def knights_knaves(
    completion: str,
    names: Sequence[str] | str,
    solution: Sequence[bool] | str | None = None,
    statements: Any = None,
    knight_knave: Any = None,
    *,
    style: str = "auto",
    mode: Mode = "strict",
) -> float:
    """1.0 or 0.0.

    names: the people. solution: for each whether he is a knight. statements: for each what he says,
    as Logic-RL and reasoning-gym write it, ("not", ("lying", 2)); it or `solution` is needed.
    knight_knave: the words for the two roles, {"knight": "sage", "knave": "fool"}. Lists may be
    JSON or Python literals.
    """
    people = names_of(names)
    truth = read_solution(solution, len(people))
    said = read_statements(statements, len(people))
    if truth is None and said is None:
        raise ValueError("one of the columns 'solution' and 'statements' must be given")
    text = declared_or_whole(completion, style, mode)
    if len(text) > LONGEST + PER_PERSON * len(people):
        return 0.0
    told = read_roles(text, people, roles_of(knight_knave))
    if told is None:
        return 0.0
    return float(told == truth if said is None else agrees(told, said))


def agrees(knights: Sequence[bool], statements: Sequence[Statement]) -> bool:
    """Whether knights, and only they, say what is true."""
    return all(
        knight == holds(said, knights) for knight, said in zip(knights, statements, strict=True)
    )


def holds(statement: Statement, knights: Sequence[bool]) -> bool:
    """Whether a statement is true of an assignment."""
    kind, *parts = statement
    if kind in ("telling-truth", "lying"):
        person: int = parts[0]
        return knights[person] == (kind == "telling-truth")
    values = [holds(part, knights) for part in parts]
    match kind:
        case "not":
            return not values[0]
        case "and":
            return all(values)
        case "or":
            return any(values)
        case "->":
            return not values[0] or values[1]
        case _:  # "<=>"
            return values[0] == values[1]


def read_roles(text: str, names: Sequence[str], roles: dict[str, bool]) -> tuple[bool, ...] | None:
    """For each person whether the text calls him a knight; None unless it says so of everyone,
    once, and says nothing else."""
    tokens = _tokens(text, names, roles)
    if tokens is None:
        return None
    if tokens and isinstance(tokens[0], bool):  # headings: turn round what belongs together
        tokens = tokens[::-1]
    told: dict[int, bool] = {}
    waiting: list[int] = []  # named, and their role is yet to come
    for token in tokens:
        if not isinstance(token, bool):
            if token in told or token in waiting:
                return None
            waiting.append(token)
        elif not waiting:
            return None
        else:
            told |= dict.fromkeys(waiting, token)
            waiting = []
    if waiting or len(told) != len(names):
        return None
    return tuple(told[person] for person in range(len(names)))


def _tokens(text: str, names: Sequence[str], roles: dict[str, bool]) -> list[int | bool] | None:
    """The names (as places in the list) and roles (as booleans) in order; None if a word is
    neither of them nor filler."""
    exact = {name: i for i, name in enumerate(names)}
    folded = {name.casefold(): i for i, name in enumerate(names) if name.casefold() not in FILLER}
    tokens: list[int | bool] = []
    text = _without_empty_headings(MARKUP.sub(" ", text), roles)
    for match in _pattern(tuple(names)).finditer(text):
        word = match[0].casefold()
        person = exact.get(match[0], folded.get(word)) if match["name"] else None
        if person is not None:
            tokens.append(person)
        elif word in roles:
            tokens.append(roles[word])
        elif not (match["space"] or match["label"] or word in FILLER):
            return None
    return tokens


@lru_cache(maxsize=1024)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    # the longest first: "Anna Maria" before "Anna"
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(?P<name>(?<!\w)(?:{known})(?!\w))|(?P<label>(?<!\w){LABEL})"
        rf"|(?P<word>[^\W\d_]+)|(?P<space>{PUNCTUATION})|(?P<other>.)",
        re.IGNORECASE | re.DOTALL,
    )


def _without_empty_headings(text: str, roles: dict[str, bool]) -> str:
    """The text without "Knaves: none"."""
    words = "|".join(map(re.escape, roles))
    return re.sub(rf"\b(?:{words})\s*:\s*none\b", " ", text, flags=re.IGNORECASE)
