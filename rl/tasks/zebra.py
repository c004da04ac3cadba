"""Logic-grid ("zebra") puzzles: who lives in which house with what?

Drawn: a random arrangement, and all clues of four kinds that are true of it, in random order; from
them one is dropped after the other while exactly one arrangement remains (found by going through
all of them). `asks: "one"` wants one short answer and `choices` has what it may be; "grid" wants
the whole grid as JSON. reasoning-gym has larger ones: {name: reasoning_gym, dataset: zebra_puzzles}
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from random import Random
from typing import ClassVar, Literal

from rl.tasks.base import Row, Split, ask, reply
from rl.tasks.drawing import DrawnTask

VALUES = {
    "name": ("Arnold", "Bella", "Carol", "Eric"),
    "pet": ("cat", "dog", "fish", "horse"),
    "drink": ("tea", "milk", "coffee", "water"),
    "colour": ("red", "green", "blue", "white"),
}
WHO = {
    "name": "{}",
    "pet": "the owner of the {}",
    "drink": "the drinker of {}",
    "colour": "the person in the {} house",
}
Thing = tuple[int, str]  # attribute (by number), value
Grid = tuple[tuple[str, ...], ...]  # for each attribute the values, house by house
Clue = tuple[str, Callable[[Grid], bool]]


@dataclass(frozen=True, kw_only=True)
class Zebra(DrawnTask):
    name: ClassVar[str] = "zebra"
    grader: ClassVar[str] = "zebra"

    houses: int = 3
    attributes: int = 3
    asks: Literal["one", "grid"] = "one"
    train_size: int = 5000
    validation_size: int = 100
    test_size: int = 200

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        return self.draw_rows(self._draw, split, limit, seed)

    def validate(self) -> None:
        self.check_sizes()
        known = 2 <= self.houses <= 4 and 2 <= self.attributes <= 4
        if not known or (self.houses == 4 and self.attributes > 2):
            raise ValueError(
                f"task {self.name!r}: 2 or 3 houses with 2 to 4 attributes, or 4 houses with 2, "
                f"since all arrangements are gone through; got {self.houses} and "
                f"{self.attributes}. reasoning_gym's zebra_puzzles are larger"
            )

    def _draw(self, rng: Random, tries: int) -> list[Row]:
        return [self._drawn(rng) for _ in range(min(tries, 16))]

    def _drawn(self, rng: Random) -> Row:
        kinds = list(VALUES)[: self.attributes]
        values = [rng.sample(VALUES[kind], self.houses) for kind in kinds]
        every = [
            tuple(arrangement)
            for arrangement in product(*(permutations(sorted(row)) for row in values))
        ]
        truth: Grid = tuple(tuple(row) for row in values)
        clues = _clues(truth, kinds)
        rng.shuffle(clues)
        kept = _enough(clues, every)
        text = "\n".join(f"{i}. {clue}." for i, (clue, _) in enumerate(kept, start=1))
        listed = "\n".join(
            f"- {kind}: {', '.join(sorted(row))}" for kind, row in zip(kinds, values, strict=True)
        )
        problem = (
            f"There are {self.houses} houses in a row, numbered from left to right. In each lives "
            f"one person, and each of these is found once:\n{listed}\nClues:\n{text}\n"
        )
        return self._row(rng, problem, kinds, truth)

    def _row(self, rng: Random, problem: str, kinds: Sequence[str], truth: Grid) -> Row:
        grid = {
            f"House {house + 1}": {kind: truth[k][house] for k, kind in enumerate(kinds)}
            for house in range(self.houses)
        }
        if self.asks == "grid":
            form = {house: dict.fromkeys(kinds, "...") for house in grid}
            prompt = ask("Solve this puzzle.", answer=json.dumps(form), problem=problem)
            gold = json.dumps(grid)
            row: Row = {"solution": gold}
        else:
            house, wanted = rng.randrange(self.houses), rng.randrange(len(kinds))
            gold = truth[wanted][house]
            question = f"{problem}What is the {kinds[wanted]} in house {house + 1}?"
            prompt = ask("Solve this puzzle.", answer="one word", problem=question)
            row = {"answer": gold, "choices": sorted(truth[wanted])}
        return row | {
            "id": prompt[0]["content"].partition("There are")[2],
            "prompt": prompt,
            "completion": reply("Only this agrees with all of the clues.", gold),
        }


def _clues(truth: Grid, kinds: Sequence[str]) -> list[Clue]:
    """Everything of four kinds that is true: in house n, same house, left of, next to."""
    things: list[tuple[Thing, int]] = [
        ((k, value), house) for k, row in enumerate(truth) for house, value in enumerate(row)
    ]
    clues: list[Clue] = []
    for a, at in things:
        who = WHO[kinds[a[0]]].format(a[1])
        clues.append((f"{_start(who)} lives in house {at + 1}", _in_house(a, at)))
        for b, there in things:
            other = WHO[kinds[b[0]]].format(b[1])
            if a < b and at == there:
                clues.append((f"{_start(who)} is {other}", _apart(a, b, (0,))))
            elif there == at + 1:
                text = f"{_start(who)} lives directly left of {other}"
                clues.append((text, _apart(a, b, (1,))))
                clues.append((f"{_start(who)} lives next to {other}", _apart(a, b, (1, -1))))
    return clues


def _enough(clues: list[Clue], every: Sequence[Grid]) -> list[Clue]:
    """Some of the clues, of which none can be spared, that one arrangement alone agrees with."""
    kept: list[Clue] = []
    left = list(every)
    for clue in clues:  # enough for one arrangement ...
        fewer = [grid for grid in left if clue[1](grid)]
        if len(fewer) < len(left):
            kept.append(clue)
            left = fewer
    for clue in list(kept):  # ... and nothing that the others say already
        rest = [other for other in kept if other is not clue]
        if sum(all(holds(grid) for _, holds in rest) for grid in every) == 1:
            kept = rest
    return kept


def _in_house(a: Thing, house: int) -> Callable[[Grid], bool]:
    return lambda grid: grid[a[0]][house] == a[1]


def _apart(a: Thing, b: Thing, distances: tuple[int, ...]) -> Callable[[Grid], bool]:
    return lambda grid: grid[b[0]].index(b[1]) - grid[a[0]].index(a[1]) in distances


def _start(text: str) -> str:
    return text[0].upper() + text[1:]
