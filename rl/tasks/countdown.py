"""Reach a target with some numbers, each used once, by + - * /.

Drawn: random numbers are combined by random operations until one is left, so a solution exists by
construction; it is `completion`. The split depends on the *sorted* numbers and the target, so the
same problem in another order is in the same split. From a file: d1's form, {"input": "30,100,93",
"output": "23"}, or Dream's, {"input": "15,44,79,50", "output": worked steps} (the target comes
last). `plain` is for a character-level model: "c30,100,93:23=".
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from rl.tasks.base import Prompt, Row, Split, ask, reply
from rl.tasks.drawing import DrawnTask
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = 'A .jsonl file with lines like {"input": "30,100,93", "output": "23"} is expected'
INTEGERS = re.compile(r"\d+(?:,\d+)+")
# on whole numbers; None where the result is none
OPERATIONS: dict[str, Callable[[int, int], int | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a // b if b and a % b == 0 else None,
}


@dataclass(frozen=True, kw_only=True)
class Countdown(DrawnTask):
    name: ClassVar[str] = "countdown"
    grader: ClassVar[str] = "countdown"

    count: int = 3
    max_number: int = 99
    max_target: int = 100
    format: Literal["plain", "chat"] = "plain"
    path: str | None = None

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        if self.path is None:
            return self.draw_rows(self._draw, split, limit, seed)
        records = read_split(self.name, self.path, split, key="input")[:limit]
        return [{**self._row(*problem_of(r), None), "id": r.id} for r in records]

    def validate(self) -> None:
        self.check_sizes()
        if not 2 <= self.count <= 8 or self.max_number < 1 or self.max_target < 1:
            raise ValueError(
                f"task {self.name!r}: count is 2 to 8 numbers, max_number and max_target are at "
                f"least 1; got {self.count}, {self.max_number} and {self.max_target}"
            )
        if self.path is not None:
            check_path(self.name, self.path, EXPECTED)

    def _draw(self, rng: Random, tries: int) -> list[Row]:
        rows: list[Row] = []
        for _ in range(tries):
            numbers = rng.choices(range(1, self.max_number + 1), k=self.count)
            parts = [(number, str(number)) for number in numbers]
            for sign in rng.choices("+-*/", k=self.count - 1):
                a, x = parts.pop(int(rng.random() * len(parts)))
                b, y = parts.pop(int(rng.random() * len(parts)))
                value = OPERATIONS[sign](a, b)
                if value is None:
                    break
                parts.append((value, f"({x}{sign}{y})"))
            else:
                target, solution = parts[0]
                if 1 <= target <= self.max_target:
                    rows.append(self._row(numbers, target, solution[1:-1]))
        return rows

    def _row(self, numbers: list[int], target: int, solution: str | None) -> Row:
        prompt: Prompt = f"c{','.join(map(str, numbers))}:{target}="
        completion = solution
        if self.format == "chat":
            prompt = ask(
                "Write an expression that equals the target. It must use each of the numbers "
                "exactly once, and only + - * / and parentheses.",
                answer="the expression alone",
                problem=f"Numbers: {', '.join(map(str, numbers))}\nTarget: {target}",
            )
            completion = solution and reply(f"{solution} = {target}", solution)
        row: Row = {
            "id": f"{','.join(map(str, sorted(numbers)))}:{target}",
            "prompt": prompt,
            "numbers": numbers,
            "target": target,
        }
        return row if completion is None else row | {"completion": completion}


def problem_of(record: Record) -> tuple[list[int], int]:
    """(numbers, target) of a line in d1's or Dream's form."""
    given, output = record.text("input"), record.text("output").strip()
    if not INTEGERS.fullmatch(given.strip()):
        raise ValueError(
            f"{record.where}: field 'input' must be whole numbers with commas between them, like "
            f"'30,100,93'; got {given!r:.80}"
        )
    numbers = [int(number) for number in given.split(",")]
    if output.isdecimal():
        return numbers, int(output)
    if "=" in output:  # Dream: the steps are written out and the target is the last number
        return numbers[:-1], numbers[-1]
    raise ValueError(
        f"{record.where}: field 'output' must be the target, like '23', or worked steps, like "
        f"'44-15=29,79-29=50'; got {output!r:.80}"
    )
