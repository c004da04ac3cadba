"""`python -m rewards.validate`: every way a case can end, every exit code, every bad input."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewards import REWARDS, validate

ROOT = Path(__file__).resolve().parents[2]

PLANTED = Path(__file__).with_name("planted_rewards.py")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    return Path(shutil.copy(PLANTED, tmp_path / "planted.py"))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(*cases: dict[str, Any]) -> Path:
        path = tmp_path / "cases.jsonl"
        path.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
        return path

    return to_file


def case(completion: str, expected: float | None, gold: Any = "1", **extra: Any) -> dict[str, Any]:
    name = f"{completion} for {gold} is {expected}"
    return {
        "id": name,
        "task": "any",
        "completion": completion,
        "gold": gold,
        "expected": expected,
        "extra": {"kind": "planted"} | extra,
    }


def run(tmp_path: Path, *arguments: Any) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "out.json"
    code = validate.main([*map(str, arguments), "--json", str(out)])
    return code, json.loads(out.read_text(encoding="utf-8"))


def statuses(found: dict[str, Any]) -> list[str]:
    return [each["status"] for each in found["cases"]]


@pytest.mark.slow
def test_every_way_to_end(planted: Path, write: Write, tmp_path: Path, capsys) -> None:
    made = tmp_path / "made"
    cases = write(
        case("1", 1.0),
        case("2", 0.0),
        case("1", 0.0, gold="1", kind="paid"),
        case("3", 1.0, kind="refused"),
        case("hang", 0.0),
        case("slow", 0.0, max_seconds=0.3),
        case("die", 0.0),
        case("raise", 0.0),
        case("nan", 0.0),
        case("text", 0.0),
        case("skip", 0.0),
        case("skip", 0.0, gold="2", accept=[0.0, None]),
        case("skip", None, gold="3"),
        case("1", None),
        case("thread", 1.0, run_in_thread=True),
        case("thread", 0.0),
        case(f"write {made}", 0.0, must_not_create=str(made)),
    )
    code, found = run(tmp_path, cases, "--reward", f"{planted}:score", "--limit", 3)
    assert code == 1
    assert statuses(found) == [
        *("right", "right", "false_positive", "false_negative", "hang", "hang"),
        *("error", "error", "error", "error", "false_negative", "right", "right"),
        *("false_positive", "right", "right", "error"),
    ]
    total = {name: found[name] for name in ("n", *validate_counts())}
    assert total == {
        "n": 17, "right": 6, "false_positive": 2, "false_negative": 2, "hang": 2, "error": 5,
    }  # fmt: skip
    assert all(each.keys() >= {"id", "score", "seconds", "status"} for each in found["cases"])
    assert found["cases"][0]["score"] == 1.0
    assert found["cases"][4]["seconds"] == 3.0
    assert found["cases"][5]["seconds"] == 0.3
    page = capsys.readouterr().out
    assert "KeyError: 'no such thing'" in page
    assert f"it wrote {made}" in page
    assert "6 of 17 right; 2 false positives, 2 false negatives, 2 hangs, 5 errors" in page
    assert "17 gradings" in page
    assert "slowest 3.00 s" in page


def validate_counts() -> tuple[str, ...]:
    return ("right", "false_positive", "false_negative", "hang", "error")


@pytest.mark.parametrize("name", ["score", "batch", "slow_but_async"])
def test_all_right_is_exit_0(name: str, planted: Path, write: Write, tmp_path: Path) -> None:
    cases = write(case("1", 1.0), case("2", 0.0))
    code, found = run(tmp_path, cases, "--reward", f"{planted}:{name}", "--workers", 1)
    assert code == 0
    assert statuses(found) == ["right", "right"]


def test_components_count_as_their_sum(planted: Path, write: Write, tmp_path: Path) -> None:
    cases = write(case("1", 1.25), case("2", 0.25), case("3", 0.0))
    code, found = run(tmp_path, cases, "--reward", f"{planted}:components", "--workers", 1)
    assert code == 1
    assert statuses(found) == ["right", "right", "false_positive"]


def test_mode_and_prefill_reach_the_reward(planted: Path, write: Write, tmp_path: Path) -> None:
    cases = write(case("", 1.0, gold="lenient"), case("", 0.0, gold="strict"))
    wanted = ("--reward", f"{planted}:settings", "--workers", 1)
    assert run(tmp_path, cases, *wanted, "--mode", "lenient")[0] == 0
    assert statuses(run(tmp_path, cases, *wanted)[1]) == ["false_negative", "false_positive"]
    cases = write(case("", 3.0, gold="strict"))
    assert run(tmp_path, cases, *wanted, "--set", "factor=3")[0] == 0
    cases = write(case("x", 1.0, prefill="<a>"))
    assert run(tmp_path, cases, "--reward", f"{planted}:echoed", "--workers", 1)[0] == 0


def test_contested_cases_are_apart(planted: Path, write: Write, tmp_path: Path, capsys) -> None:
    cases = write(case("1", 1.0), case("2", 1.0, contested=True))
    wanted = ("--reward", f"{planted}:score", "--workers", 1)
    code, found = run(tmp_path, cases, *wanted)
    assert (code, found["false_negative"], found["uncontested"]["false_negative"]) == (0, 1, 0)
    assert "Contested, and not as the case expects\n" in capsys.readouterr().out
    assert run(tmp_path, cases, *wanted, "--count-contested")[0] == 1


def test_auto_takes_the_reward_of_the_task(write: Write, tmp_path: Path) -> None:
    numbers = {"numbers": [3, 4], "target": 7}
    cases = write(
        case("<answer>70,000</answer>", 1.0, gold="70000") | {"task": "gsm8k"},
        case("<answer>3+4</answer>", 1.0, gold=None, **numbers) | {"task": "countdown"},
        case("<answer>3*4</answer>", 0.0, gold=None, **numbers) | {"task": "countdown"},
    )
    code, found = run(tmp_path, cases, "--workers", 1)
    assert code == 0
    assert [each["reward"] for each in found["cases"]] == ["gsm8k", "countdown", "countdown"]
    assert set(validate.BY_TASK.values()) <= set(REWARDS)


def test_gold_is_the_solution_where_one_is_needed(write: Write, tmp_path: Path) -> None:
    """zebra takes an `answer` or a `solution`, and the solution is a grid."""
    gold = {"gold": "Eric", "task": "zebra"}
    grid = {"puzzle": "1204041020400321"}
    cases = write(
        case("<answer>Eric</answer>", 1.0) | gold,
        case("<answer>4444444444444444</answer>", 0.25, gold="1234341221434321", **grid)
        | {"task": "parity:d1_sudoku"},
    )
    _, found = run(tmp_path, cases, "--workers", 1)
    name, cells = (each["score"] for each in found["cases"])
    assert name == 1.0
    assert 0 < cells < 1


GOOD = case("1", 1.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON: "),
        ("[" * 100_000, "line 2: not JSON: "),
        ("[1]", "line 2: a case is a JSON object, got '[1]'"),
        ({"expected": ...}, "line 2: missing expected; it has id, task, completion, gold, extra"),
        ({"gold": ...}, "line 2: missing gold"),
        ({"id": GOOD["id"]}, f"line 2: id {GOOD['id']!r} is taken by line 1"),
        ({"id": ""}, "line 2: id must be a text that is not empty, got ''"),
        ({"completion": 3}, "line 2: completion must be a text, got 3"),
        ({"expected": "1"}, "line 2: expected must be a finite number or null, got '1'"),
        ({"expected": float("nan")}, "line 2: expected must be a finite number or null, got nan"),
        ({"expected": True}, "line 2: expected must be a finite number or null, got True"),
        ({"extra": []}, "line 2: extra must be a JSON object, got []"),
        ({"extra": {"max_seconds": 0}}, "line 2: extra.max_seconds must be a number of seconds"),
        ({"extra": {"accept": 1}}, "line 2: extra.accept must be a list of"),
        ({"extra": {"contested": "no"}}, "line 2: extra.contested must be true or false"),
        ({"task": "chess"}, "line 2: no registered reward for the task 'chess'; known tasks: "),
        ({"task": "countdown"}, "line 2: reward 'countdown' needs the column 'numbers' and"),
    ],
)
def test_bad_cases_are_told_by_line(line: Any, said: str, tmp_path: Path, capsys) -> None:
    """Before anything runs: the first case would be graded otherwise."""
    if isinstance(line, dict):
        fields = GOOD | {"id": "second", "task": "gsm8k"} | line
        line = json.dumps({k: v for k, v in fields.items() if v is not ...})
    path = tmp_path / "bad.jsonl"
    first = json.dumps(GOOD | {"task": "gsm8k"})
    path.write_text(f"{first}\n{line}\n", encoding="utf-8")
    assert validate.main([str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        ("mth", "unknown reward 'mth'. Known: auto, "),
        ("nowhere.py:score", "FileNotFoundError: "),
        ("no_such_package:score", "cannot be imported: ModuleNotFoundError"),
        ("{planted}:scor", "has no function 'scor'"),
        ("{planted}:LIMIT", "has no function 'LIMIT'"),
        ("{broken}:score", "cannot be imported: ZeroDivisionError"),
        ("{planted}", ".py: which function?"),
        ("operator:neg", "'operator:neg' takes (a"),
        ("fractions:Fraction", "is a class"),
        ("http_endpoint", "import HttpEndpoint; judge = HttpEndpoint(...)`"),
        ("reward_model", "import RewardModel; judge = RewardModel(...)`"),
    ],
)
def test_bad_rewards(
    reward: str, said: str, planted: Path, write: Write, tmp_path: Path, capsys
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n", encoding="utf-8")
    name = reward.format(planted=planted, broken=broken)
    assert validate.main([str(write(GOOD)), "--reward", name]) == 2
    assert said in capsys.readouterr().err


def test_bad_files(tmp_path: Path, capsys) -> None:
    empty, binary = tmp_path / "empty.jsonl", tmp_path / "binary.jsonl"
    empty.write_text("\n\n")
    binary.write_bytes(b"\xff\xfe")
    for path, said in [
        (empty, "has no case"),
        (binary, "is not UTF-8"),
        (tmp_path / "nowhere.jsonl", "No such file"),
        (tmp_path, "Is a directory"),
    ]:
        assert validate.main([str(path)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--limit", "0"), ("--limit", "nan"), ("--workers", "0")])
def test_bad_options(option: tuple[str, str], write: Write) -> None:
    with pytest.raises(SystemExit, match="2"):
        validate.main([str(write(GOOD)), *option])


def test_a_setting_that_no_reward_has(write: Write, capsys) -> None:
    path = str(write(GOOD))
    assert validate.main([path, "--reward", "gsm8k", "--set", "stile=box"]) == 2
    assert "no reward used here has the setting 'stile'; they have mode, style" in (
        capsys.readouterr().err
    )


def test_a_style_that_does_not_exist(write: Write, capsys) -> None:
    assert validate.main([str(write(GOOD)), "--reward", "gsm8k", "--set", "style=boxx"]) == 2
    assert "style is 'boxx'; use one of auto, tag" in capsys.readouterr().err


def test_an_output_that_cannot_be_written(write: Write, tmp_path: Path, capsys) -> None:
    assert validate.main([str(write(GOOD)), "--reward", "gsm8k", "--json", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_command_itself(planted: Path, write: Write, tmp_path: Path) -> None:
    """From any folder, with a reward named relative to it, and ids that no terminal shows."""
    cases = write(case("1", 0.0) | {"id": "\ud800"})
    command = [sys.executable, "-m", "rewards.validate", cases, "--reward", "planted.py:score"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "\\ud800" in done.stdout
    assert "false positive" in done.stdout
