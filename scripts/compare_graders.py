"""Where two graders disagree, on real outputs: a table by category, and every case as JSON.

    python scripts/compare_graders.py GENERATIONS.jsonl.gz --graders math math_verify --task math500

A line of the input is a JSON object with the completion (`generation` or `completion`) and the gold
(`ground_truth`, `gold` or `answer`); its other keys are columns for graders that need them. A
category says what the answer looks like, not who is right: read the cases (`--out`) for that.
"""

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rewards import REWARDS, extract, per_completion
from rewards.values import total

COMPLETION = ("generation", "completion")
GOLD = ("ground_truth", "gold", "answer")
FORMS = (
    ("matrix or vector", r"\\begin\{"),
    ("number base", r"\d_\{?\d"),
    ("union or set", r"\\cup|\\setminus|\\\{|\\in(?![a-z])"),
    ("inequality", r"[<>]|\\[lg]eq?(?![a-z])"),
    ("equation", r"="),
    ("percent", r"%"),
    ("currency", r"\$"),
    ("thousands separator", r"\d(?:,|\\,|\\!|\{,\})+\s*\d{3}(?!\d)"),
    ("list, point or interval", r",|\\pm|\b(?:and|or)\b"),
    ("degrees", r"\\circ|degree"),
    ("words or a unit", r"\\(?:text|mbox)|(?<![\\A-Za-z])[A-Za-z]{3,}"),
    ("root or pi", r"\\sqrt|\\pi"),
    ("fraction or decimal", r"\\[dt]?frac|\d/\d|\d\.\d"),
    ("expression", r"[A-Za-z^+*]"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    try:
        everything = list(read(options.generations))
    except (OSError, ValueError) as error:  # gzip's and json's are among them
        raise SystemExit(f"cannot read {options.generations}: {error}") from None
    rows = [row for row in everything if options.task in (None, row.get("task"))]
    if not rows:
        tasks = ", ".join(sorted({str(row["task"]) for row in everything if "task" in row}))
        raise SystemExit(
            f"{options.generations} has no line with task {options.task!r}; it has "
            f"{tasks or 'no tasks'}"
        )
    scores = {name: grade(name, rows) for name in options.graders}
    first, second = (scores[name] for name in options.graders)
    apart = [
        {
            "category": category(pick(row, COMPLETION), str(pick(row, GOLD))),
            "gold": pick(row, GOLD),
            "answer": extract(pick(row, COMPLETION)).text,
            **dict(zip(options.graders, (a, b), strict=True)),
            "line": row["line"],
            "completion": pick(row, COMPLETION),
        }
        for row, a, b in zip(rows, first, second, strict=True)
        if a != b
    ]
    print("\n".join(table(options.graders, scores, apart, len(rows))))
    if options.out is not None:
        lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in apart]
        options.out.write_text("".join(lines), encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("generations", type=Path, metavar="GENERATIONS.jsonl[.gz]")
    parser.add_argument(
        "--graders",
        nargs=2,
        default=("math", "math_verify"),
        choices=sorted(REWARDS),
        metavar="NAME",
        help="two registered graders (math math_verify)",
    )
    parser.add_argument("--task", help="only the lines of this task")
    parser.add_argument("--out", type=Path, help="write every disagreement there, as JSON lines")
    return parser


def read(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            row = json.loads(line) | {"line": number}
            if pick(row, GOLD) is not None:
                yield row


def pick(row: dict[str, Any], names: Sequence[str]) -> Any:
    """The first of the columns that the row has."""
    for name in names:
        if name in row:
            return row[name]
    raise SystemExit(f"line {row['line']} has none of {', '.join(names)}; it has {', '.join(row)}")


def grade(name: str, rows: Sequence[dict[str, Any]]) -> list[float | None]:
    columns = {key: [row.get(key) for row in rows] for row in rows for key in row}
    columns["answer"] = [str(pick(row, GOLD)) for row in rows]
    completions = [pick(row, COMPLETION) for row in rows]
    try:
        scores = per_completion(REWARDS[name])([""] * len(rows), completions, **columns)
    except ValueError as error:
        raise SystemExit(f"{name} cannot grade these lines (--task picks some): {error}") from None
    return [None if score is None else total(score) for score in scores]


def category(completion: str, gold: str) -> str:
    """What stands in the way: how the answer is declared, else its form, else the gold's."""
    found = extract(completion)
    if found.status != "ok":
        return found.status
    for text in (found.text or "", gold):
        for name, pattern in FORMS:
            if re.search(pattern, text):
                return name
    return "several boxes" if found.boxes > 1 else "plain number"


def table(
    names: Sequence[str],
    scores: dict[str, list[float | None]],
    apart: Sequence[dict[str, Any]],
    rows: int,
) -> Iterator[str]:
    for name in names:
        known = [score for score in scores[name] if score is not None]
        yield f"{name}: mean {sum(known) / len(known):.4f} of {len(known)}"
    yield f"they differ on {len(apart)} of {rows}"
    yield f"\n{'category':26s} {'more by ' + names[0]:>22s} {'more by ' + names[1]:>22s}"
    more = Counter(
        (case["category"], (case[names[0]] or 0) > (case[names[1]] or 0)) for case in apart
    )
    for kind in sorted({kind for kind, _ in more}):
        yield f"{kind:26s} {more[kind, True]:22d} {more[kind, False]:22d}"


if __name__ == "__main__":
    main()
