"""Knights tell the truth and knaves lie: who is who?

Drawn: each of `people` says something about the others; thrown back until exactly one assignment
agrees with all of it (found by trying all 2^n). From a file: Logic-RL's parquet, or .jsonl with its
columns quiz, names, solution and statements. The grader asks the statements, so the stored solution
is needed for nothing but `completion`.
"""

import json
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, ClassVar

from rewards.knights_columns import Statement, names_of, read_solution, read_statements
from rewards.knights_knaves import agrees
from rl.tasks.base import Row, Split, ask, reply
from rl.tasks.drawing import DrawnTask
from rl.tasks.sources import WITH_PARQUET, Record, check_path, read_split

EXPECTED = (
    "A .parquet or .jsonl file with the fields quiz, names, solution and statements, as in "
    "Logic-RL, or a folder with train and test files is expected"
)
NAMES = (
    "Ada", "Ben", "Cora", "Dan", "Eve", "Finn", "Gwen", "Hugo", "Iris", "Jack",
    "Kira", "Liam", "Mona", "Noah", "Olga", "Paul", "Quinn", "Rosa", "Sam", "Tess",
)  # fmt: skip
CONNECTIVES = ("and", "or", "->", "<=>")
WORDS = {"and": "{} and {}", "or": "{} or {}", "->": "if {} then {}", "<=>": "{} if and only if {}"}


@dataclass(frozen=True, kw_only=True)
class KnightsKnaves(DrawnTask):
    name: ClassVar[str] = "knights_knaves"
    grader: ClassVar[str] = "knights_knaves"

    people: int = 3
    knight: str = "knight"
    knave: str = "knave"
    path: str | None = None

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        if self.path is None:
            return self.draw_rows(self._draw, split, limit, seed)
        records = read_split(self.name, self.path, split, key="quiz")[:limit]
        return [_from_file(record) for record in records]

    def validate(self) -> None:
        self.check_sizes()
        if not 2 <= self.people <= 8:
            raise ValueError(f"task {self.name!r}: people is 2 to 8; got {self.people}")
        words = (self.knight, self.knave)
        if not all(word.isalpha() for word in words) or len(set(words)) < 2:
            raise ValueError(
                f"task {self.name!r}: knight and knave are two different words; got {words}"
            )
        if self.path is not None:
            check_path(self.name, self.path, EXPECTED, WITH_PARQUET)

    def _draw(self, rng: Random, tries: int) -> list[Row]:
        rows: list[Row] = []
        for _ in range(tries):
            statements = [_statement(rng, self.people, speaker) for speaker in range(self.people)]
            fitting = [
                knights
                for knights in product([True, False], repeat=self.people)
                if agrees(knights, statements)
            ]
            if len(fitting) == 1:
                rows.append(self._row(rng.sample(NAMES, self.people), statements, fitting[0]))
        return rows

    def _row(self, names: list[str], statements: list[Statement], knights: tuple[bool, ...]) -> Row:
        said = " ".join(
            f'{name} says: "{self._in_words(statement, names)}."'
            for name, statement in zip(names, statements, strict=True)
        )
        quiz = (
            f"On an island everyone is either {_a(self.knight)}, who always tells the truth, or "
            f"{_a(self.knave)}, who always lies. You meet {', '.join(names)}. {said} Who is "
            f"{_a(self.knight)} and who is {_a(self.knave)}?"
        )
        words = {"knight": self.knight, "knave": self.knave}
        row = _asked(f"{','.join(names)}:{json.dumps(statements)}", quiz, names, words, knights)
        return row | {"statements": json.dumps(statements)}

    def _in_words(self, statement: Statement, names: list[str]) -> str:
        kind, *parts = statement
        if kind in ("telling-truth", "lying"):
            role = self.knight if kind == "telling-truth" else self.knave
            return f"{names[parts[0]]} is {_a(role)}"
        if kind == "not":
            return f"this is false: {self._in_words(parts[0], names)}"
        return WORDS[kind].format(*(self._in_words(part, names) for part in parts))


def _statement(rng: Random, people: int, speaker: int) -> Statement:
    """Half of the time about one other person, else two statements about any two people."""
    if rng.random() < 0.5:
        other = rng.choice([person for person in range(people) if person != speaker])
        return (rng.choice(["telling-truth", "lying"]), other)
    two = [(rng.choice(["telling-truth", "lying"]), i) for i in rng.sample(range(people), 2)]
    both: Statement = (rng.choice(CONNECTIVES), *two)
    return ("not", both) if rng.random() < 0.2 else both


def _from_file(record: Record) -> Row:
    fields = record.fields
    try:
        names = names_of(fields.get("names"))
        knights = read_solution(fields.get("solution"), len(names))
        statements = read_statements(fields.get("statements"), len(names))
    except ValueError as error:
        raise ValueError(f"{record.where}: {error}") from error
    if knights is None or statements is None:
        raise ValueError(f"{record.where}: the fields solution and statements are needed")
    known = fields.get("knight_knave")
    words = {role: known[role] if known else role for role in ("knight", "knave")}
    row = _asked(record.id, record.text("quiz"), names, words, knights)
    return row | {"statements": json.dumps(statements)}


def _asked(
    key: str, quiz: str, names: list[str], words: dict[str, str], knights: tuple[bool, ...]
) -> Row:
    roles = [words["knight"] if knight else words["knave"] for knight in knights]
    answer = ", ".join(
        f"({i}) {name} is {_a(role)}"
        for i, (name, role) in enumerate(zip(names, roles, strict=True), start=1)
    )
    row: dict[str, Any] = {
        "id": key,
        "prompt": ask(
            "Solve this puzzle.",
            answer=f"(1) {names[0]} is {_a(words['knight'])} or {_a(words['knave'])}, and so on "
            "for everyone",
            problem=quiz,
        ),
        "names": names,
        "solution": list(knights),
        "knight_knave": json.dumps(words),
        "completion": reply("Only this agrees with everything that is said.", answer),
    }
    return row


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
