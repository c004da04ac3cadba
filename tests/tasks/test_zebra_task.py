import json
import re
from collections.abc import Callable
from itertools import permutations, product

import pytest

from rewards.zebra import zebra
from rl.tasks.zebra import Zebra


def columns(row: dict[str, object]) -> dict[str, object]:
    return {key: row[key] for key in ("answer", "solution") if key in row}


def solutions(prompt: str) -> list[dict[str, dict[str, str]]]:
    """Every arrangement that agrees with the text of the clues, read anew."""
    lists = {kind: values.split(", ") for kind, values in re.findall(r"- (\w+): (.+)", prompt)}
    clues = re.findall(r"^\d+\. (.+)\.$", prompt, re.MULTILINE)
    found = []
    for arrangement in product(*(permutations(values) for values in lists.values())):
        place = {value: house for row in arrangement for house, value in enumerate(row)}
        if all(agrees(clue, place) for clue in clues):
            found.append(
                {
                    f"House {house + 1}": {
                        kind: row[house] for kind, row in zip(lists, arrangement, strict=True)
                    }
                    for house in range(len(arrangement[0]))
                }
            )
    return found


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    " lives directly left of ": lambda a, b: a + 1 == b,
    " lives next to ": lambda a, b: abs(a - b) == 1,
    " is ": lambda a, b: a == b,
}


def agrees(clue: str, place: dict[str, int]) -> bool:
    def house(text: str) -> int:
        (value,) = (word for word in re.findall(r"\w+", text) if word in place)
        return place[value]

    if " lives in house " in clue:
        who, _, number = clue.rpartition(" lives in house ")
        return house(who) == int(number) - 1
    for words, holds in RELATIONS.items():
        if words in clue:
            left, _, right = clue.partition(words)
            return holds(house(left), house(right))
    raise AssertionError(clue)


@pytest.mark.parametrize(("houses", "attributes"), [(2, 2), (3, 3), (4, 2)])
def test_the_clues_leave_one_arrangement_and_none_can_be_spared(houses: int, attributes: int):
    task = Zebra(houses=houses, attributes=attributes, asks="grid")
    for row in task.rows("train", limit=12):
        prompt = row["prompt"][0]["content"]
        assert solutions(prompt) == [json.loads(row["solution"])]
        for clue in re.findall(r"^\d+\. .+\.\n", prompt, re.MULTILINE):
            assert len(solutions(prompt.replace(clue, ""))) > 1
        assert zebra(row["completion"], **columns(row)) == 1.0


def test_one_answer():
    for row in Zebra().rows("train", limit=30):
        prompt = row["prompt"][0]["content"]
        (grid,) = solutions(prompt)
        kind, house = re.search(r"What is the (\w+) in house (\d)\?", prompt).groups()
        assert grid[f"House {house}"][kind] == row["answer"]
        assert row["answer"] in row["choices"]
        assert len(row["choices"]) == 3
        assert zebra(row["completion"], **columns(row)) == 1.0
        wrong = next(choice for choice in row["choices"] if choice != row["answer"])
        assert zebra(f"<answer>{wrong}</answer>", **columns(row)) == 0.0


def test_splits_share_no_puzzle_whatever_the_seed():
    task = Zebra(houses=2, attributes=3, validation_size=10, test_size=10)
    held = {row["id"] for split in ("validation", "test") for row in task.rows(split, seed=5)}
    assert len(held) == 20
    train = task.rows("train", limit=100, seed=1)
    assert not held & {row["id"] for row in train}
    assert train == task.rows("train", limit=120, seed=1)[:100]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"houses": 5}, "2 or 3 houses"),
        ({"houses": 1}, "2 or 3 houses"),
        ({"houses": 4, "attributes": 3}, "or 4 houses with 2"),
        ({"attributes": 5}, "2 to 4 attributes"),
        ({"test_size": -1}, "test_size is a number of rows"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        Zebra(**settings).rows("train", limit=1)
