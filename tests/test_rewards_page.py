"""docs/rewards.md: its examples run as they stand, and its policy is the graders' own."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewards import REWARDS
from rewards.case_grading import grade_case
from rewards.cases import EXTRAS, read_cases
from rl.reward_binding import bind_reward

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


FILES = {code.split("\n", 1)[0].removeprefix("# "): code for code in blocks("python")[:2]}
RECIPES = [entry for text in blocks("yaml") for entry in yaml.safe_load(text)["rewards"]]
CASES = blocks("json")
COMMANDS = [line for text in blocks("bash") for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """The page's files, in the current folder."""
    for name, code in FILES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_TOKEN", "secret")
    return tmp_path


def test_the_page_has_what_the_tests_look_for() -> None:
    assert list(FILES) == ["my_rewards.py", "parts.py"]
    assert (len(RECIPES), len(CASES), len(COMMANDS), len(POLICY)) == (6, 2, 4, 23)


@pytest.mark.parametrize("entry", RECIPES, ids=str)
def test_entries_of_recipes(entry: Any, folder: Path) -> None:
    problems: list[str] = []
    bound = bind_reward(entry, "rewards.0", folder, lambda *told: problems.append(str(told)))
    assert problems == []
    assert bound is not None
    assert bound.weight == entry.get("weight", 1.0)
    if hasattr(bound.function, "pool"):
        bound.function.pool.close()


@pytest.mark.parametrize("place", range(len(COMMANDS)))
def test_commands(place: int, folder: Path) -> None:
    """The first is for the first block of cases, the others for the second."""
    command = shlex.split(COMMANDS[place])
    assert command.pop(0) == "python"
    (folder / "cases.jsonl").write_text(CASES[place > 0], encoding="utf-8")
    if "gsm8k" in command:  # one task's cases
        (folder / "cases.jsonl").write_text(CASES[1].splitlines()[0], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *command], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "verdicts.json" in command:
        assert json.loads((folder / "verdicts.json").read_text())["right"] == 1


def test_components(folder: Path) -> None:
    score, _, _ = grade_case("parts.py:parts", "It is 42", {"answer": "42"}, {})
    assert score == pytest.approx(1 - 0.008)


def test_extraction_example() -> None:
    """Each line says in its comment what it gives."""
    importing, *lines = [line for line in blocks("python")[2].splitlines() if line]
    names: dict[str, Any] = {}
    exec(importing, names)
    assert len(lines) == 3
    for line in lines:
        call, _, comment = line.partition("  #")
        assert eval(call, names) == re.findall(r'"(\w+)"', comment)[0], line


POLICY = [
    tuple(cell.strip() for cell in row.strip("|").split(" | "))
    for row in re.findall(r"^\| (?:math|gsm8k) .*$", PAGE.split("<!-- policy -->")[1], re.M)
]


@pytest.mark.slow
@pytest.mark.parametrize("row", POLICY, ids=lambda row: " ".join(row[:3]))
def test_policy(row: tuple[str, ...]) -> None:
    task, gold, answer, paid = (cell.strip("` ") for cell in row)
    expected = {"y": 1.0, "n": 0.0}[paid[0]]
    for text in (rf"So it is \boxed{{{answer}}}.", f"<answer>\n{answer}\n</answer>"):
        assert REWARDS[task](text, answer=gold) == expected, text


def test_every_field_of_a_case_is_documented() -> None:
    assert all(f"`extra.{name}`" in PAGE for name in EXTRAS)
    for text in CASES:
        for line in text.splitlines():
            assert json.loads(line)


def test_cases_of_the_page_are_well_formed(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("".join(CASES), encoding="utf-8")
    assert len(read_cases(path)) == 5
