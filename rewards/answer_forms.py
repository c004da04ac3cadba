r"""What kind of answer a text is: a number with a unit, a list, an interval, an equation ...

    x = 1, 2  is  Listing((Relation(("x", "1"), ("=",)), Quantity("2")), ",")

`rewards.answer_reading` reads them. What stands inside stays text.
"""

from dataclasses import dataclass

from rewards.answer_units import Unit


@dataclass(frozen=True)
class Words:
    """Text: equal only to the same words."""

    words: str


@dataclass(frozen=True)
class Choice:
    """(B), or (B) 12. `sure`: it can be nothing else than the letter of a choice."""

    letter: str
    content: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Clock:
    hour: int
    minute: int
    half: str = ""  # "a", "p" or not said


@dataclass(frozen=True)
class Based:
    r"""52_8: digits and the base they are written in."""

    digits: str
    base: int


@dataclass(frozen=True)
class Quantity:
    """An expression, and its unit if it has one."""

    number: str
    unit: Unit = ()


@dataclass(frozen=True)
class Listing:
    r"""Several answers. `joint`: what stands between them: "or", "and" or a comma; \{ for a set."""

    parts: tuple["Form", ...]
    joint: str = ","


@dataclass(frozen=True)
class Group:
    """Parts in an order between brackets: a point, a vector, an interval."""

    opening: str
    parts: tuple["Form", ...]
    closing: str


@dataclass(frozen=True)
class Matrix:
    rows: tuple[tuple["Form", ...], ...]


@dataclass(frozen=True)
class Union:
    r"""Sets joined by \cup; `without` what is taken out of them."""

    parts: tuple["Form", ...]
    without: tuple["Form", ...] = ()


@dataclass(frozen=True)
class Relation:
    r"""Sides and what stands between them: 1 < x \leq 5, y = 2x + 3, x \in [-2, 7]."""

    sides: tuple[str, ...]
    operators: tuple[str, ...]


Form = Words | Choice | Clock | Based | Quantity | Listing | Group | Matrix | Union | Relation
