"""Policies that solve nothing: what a reward pays them is what it pays for nothing.

    BASELINES[grader][name](rng, **columns) -> a completion, in <reasoning> and <answer> blocks

A score below one of them says nothing about the task: a constant grid earns 26 % of d1's Sudoku
reward, and LLaDA-8B-Instruct's published 12 % is less than that. The parameters after `rng` name
the columns that a policy looks at; none looks at the solution.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from rewards.countdown import numbers_of
from rewards.knights_columns import names_of
from rewards.sudoku import fillers, greedy
from rewards.sudoku_layouts import read_puzzle

Policy = Callable[..., str]
SYMBOLS = "0123456789ABCDEFGHIJKLMNOP"
# the most frequent golds: 3.0 % of GSM8K's test set, 3.8 % of MATH-500
GSM8K_MODE, MATH_MODE = "5", "3"


def said(answer: str) -> str:
    """A completion that gives this answer in the form that the tasks ask for."""
    return f"<reasoning>\nA guess.\n</reasoning>\n<answer>\n{answer}\n</answer>"


def constant_grid(rng: Random, puzzle: Any) -> str:
    """The largest number in every cell, clues overwritten."""
    _, n = read_puzzle(puzzle)
    return said(SYMBOLS[n] * (n * n))


def constant_filler(rng: Random, puzzle: Any) -> str:
    """The largest number in every empty cell."""
    clues, n = read_puzzle(puzzle)
    return said("".join(SYMBOLS[clue or n] for clue in clues))


def greedy_filler(rng: Random, puzzle: Any) -> str:
    """One pass: in each empty cell the lowest number that its row, column and box do not have."""
    clues, n = read_puzzle(puzzle)
    return said("".join(SYMBOLS[cell] for cell in greedy(clues, n)))


def row_filler(rng: Random, puzzle: Any) -> str:
    """In each row the missing numbers, in ascending order."""
    clues, n = read_puzzle(puzzle)
    *_, rows = fillers(clues, n)
    return said("".join(SYMBOLS[cell] for cell in rows))


def random_expression(rng: Random, numbers: Any) -> str:
    """All the numbers in random order, with random operators and brackets."""
    parts = [str(number) for number in numbers_of(numbers)]
    rng.shuffle(parts)
    while len(parts) > 1:
        at = rng.randrange(len(parts) - 1)
        parts[at : at + 2] = [f"({parts[at]} {rng.choice('+-*/')} {parts[at + 1]})"]
    return said(parts[0])


def sum_of_all(rng: Random, numbers: Any) -> str:
    """The numbers as they are given, added up."""
    return said(" + ".join(map(str, numbers_of(numbers))))


def empty_answer(rng: Random) -> str:
    """An answer block with nothing in it."""
    return said("")


def all_knights(rng: Random, names: Any, knight_knave: Any = None) -> str:
    """Everyone tells the truth."""
    people = names_of(names)
    return said(_roles(people, [True] * len(people), knight_knave))


def random_roles(rng: Random, names: Any, knight_knave: Any = None) -> str:
    """Everyone is whatever the coin says."""
    people = names_of(names)
    return said(_roles(people, [rng.random() < 0.5 for _ in people], knight_knave))


def random_choice(rng: Random, choices: Sequence[str]) -> str:
    """One of the answers that may be right."""
    return said(rng.choice(list(choices)))


def gsm8k_mode(rng: Random) -> str:
    """The most frequent answer of GSM8K's test set."""
    return said(GSM8K_MODE)


def math_mode(rng: Random) -> str:
    """The most frequent answer of MATH-500."""
    return said(rf"\boxed{{{MATH_MODE}}}")


def of_reasoning_gym(rng: Random, metadata: Any) -> str:
    """The policy of the like task above; where there is none, 0."""
    known: dict[str, Any] = json.loads(metadata) if isinstance(metadata, str) else metadata
    match known.get("source_dataset"):
        case "countdown":
            return random_expression(rng, known["numbers"])
        case "sudoku" | "mini_sudoku":
            return greedy_filler(rng, known["puzzle"])
        case "knights_knaves":
            return all_knights(rng, known["names"], known.get("knight_knave_terms"))
        case _:
            return said("0")


def _roles(names: Sequence[str], knights: Sequence[bool], words: Any) -> str:
    known: dict[str, Any] = (json.loads(words) if isinstance(words, str) else words) or {}
    knight, knave = (str(known.get(role, role)) for role in ("knight", "knave"))
    return ", ".join(
        f"({i}) {name} is a {knight if is_knight else knave}"
        for i, (name, is_knight) in enumerate(zip(names, knights, strict=True), start=1)
    )


SUDOKU: dict[str, Policy] = {
    "constant": constant_grid,
    "constant_filler": constant_filler,
    "greedy_filler": greedy_filler,
    "row_filler": row_filler,
}
COUNTDOWN: dict[str, Policy] = {
    "random_expression": random_expression,
    "sum": sum_of_all,
    "empty_answer": empty_answer,
}
BASELINES: dict[str, dict[str, Policy]] = {
    "sudoku": SUDOKU,
    "parity:d1_sudoku": SUDOKU,
    "countdown": COUNTDOWN,
    "parity:d1_countdown": COUNTDOWN,
    "knights_knaves": {"all_knights": all_knights, "random_roles": random_roles},
    "zebra": {"random_choice": random_choice},
    "reasoning_gym": {"trivial": of_reasoning_gym},
    "gsm8k": {"constant": gsm8k_mode},
    "math": {"constant": math_mode},
}
