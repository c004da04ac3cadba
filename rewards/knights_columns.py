"""The columns of a knights-and-knaves row, as Logic-RL's files and reasoning-gym write them."""

import ast
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

# ("telling-truth", person), ("lying", person), ("not", s), ("and" | "or", s, ...),
# ("->" | "<=>", s, s)
Statement = tuple[Any, ...]

PARTS = {"not": 1, "->": 2, "<=>": 2}  # of a statement that is made of others
DEEPEST = 20


def names_of(value: Any) -> list[str]:
    """The column `names`: a list, or text with commas between the names."""
    if isinstance(value, str) and not value.lstrip().startswith(("[", "(")):
        value = [name.strip() for name in value.split(",")]
    names = [str(name).strip() for name in _sequence("names", value)]
    if not names or "" in names or len({name.casefold() for name in names}) < len(names):
        raise ValueError(f"column 'names' must hold different names, at least one; got {value!r}")
    return names


def read_solution(value: Any, people: int) -> tuple[bool, ...] | None:
    """For each person whether he is a knight."""
    if value is None:
        return None
    solution = tuple(_sequence("solution", value))
    if len(solution) != people or not all(_is_boolean(knight) for knight in solution):
        raise ValueError(
            f"column 'solution' must be true or false for each of the {people} names; got {value!r}"
        )
    return tuple(bool(knight) for knight in solution)


def read_statements(value: Any, people: int) -> tuple[Statement, ...] | None:
    """For each person what he says; checked, so that reading them later cannot fail."""
    if value is None:
        return None
    statements = tuple(_sequence("statements", value))
    if len(statements) != people:
        raise ValueError(
            f"column 'statements' must have one statement for each of the {people} names; it has "
            f"{len(statements)}"
        )
    return tuple(_checked(statement, people, DEEPEST) for statement in statements)


def roles_of(value: Any) -> dict[str, bool]:
    """word -> whether it is the one for knights; singular and plural."""
    words = _literal(value) if isinstance(value, str) else value
    if words is None:
        words = {"knight": "knight", "knave": "knave"}
    if not isinstance(words, Mapping) or not {"knight", "knave"} <= {*words}:
        raise ValueError(
            f"column 'knight_knave' must be like {{'knight': 'sage', 'knave': 'fool'}}; "
            f"got {value!r:.100}"
        )
    roles: dict[str, bool] = {}
    for role, is_knight in (("knight", True), ("knave", False)):
        word = str(cast("Mapping[str, Any]", words)[role]).strip().casefold()
        roles |= dict.fromkeys((word, f"{word}s", f"{word}es"), is_knight)
    return roles


def _checked(value: Any, people: int, depth: int) -> Statement:
    parts = tuple(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else ()
    match parts:
        case ("telling-truth" | "lying", int(person)) if 0 <= person < people:
            return parts
        case (str(kind), *inner) if inner and depth and kind in ("and", "or", *PARTS):
            if PARTS.get(kind, len(inner)) == len(inner):
                return (kind, *(_checked(part, people, depth - 1) for part in inner))
        case _:
            pass
    raise ValueError(
        f"column 'statements': {value!r:.100} is no statement about {people} people; one is like "
        f"('not', ('lying', 0)) or ('<=>', ('telling-truth', 0), ('lying', 1))"
    )


def _sequence(column: str, value: Any) -> list[Any]:
    read = _literal(value) if isinstance(value, str) else value
    if not isinstance(read, Iterable) or isinstance(read, str | bytes | Mapping):
        raise ValueError(f"column {column!r} must be a list; got {value!r:.100}")
    return list(cast("Iterable[Any]", read))


def _literal(text: str) -> Any:
    """JSON or a Python literal, whichever it is; None if neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _is_boolean(value: Any) -> bool:
    """Also 0 and 1, and the booleans of numpy."""
    return not isinstance(value, str) and value in (True, False)
