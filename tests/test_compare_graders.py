"""The report on where two graders disagree."""

import gzip
import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "compare_graders.py"


def test_the_table_and_the_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = [
        {"task": "a", "generation": r"\boxed{12}", "ground_truth": "12"},
        {"task": "a", "generation": r"\boxed{\$12}", "ground_truth": "12"},
        {"task": "a", "generation": "<answer>12</answer>", "ground_truth": "13"},
        {"task": "a", "generation": r"\boxed{\frac{24}{2}}", "ground_truth": "12"},
        {"task": "b", "generation": "<answer>12</answer>", "ground_truth": "12"},
    ]
    source, out = tmp_path / "generations.jsonl.gz", tmp_path / "apart.jsonl"
    with gzip.open(source, "wt") as file:
        file.write("\n".join(map(json.dumps, rows)))
    main = runpy.run_path(str(SCRIPT))["main"]
    main([str(source), "--graders", "gsm8k", "int_answer", "--task", "a", "--out", str(out)])
    said = capsys.readouterr().out
    assert "gsm8k: mean 0.7500 of 4" in said
    assert "int_answer: mean 0.2500 of 4" in said
    assert "they differ on 4 of 4" in said
    apart = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(c["category"], c["gsm8k"], c["int_answer"]) for c in apart] == [
        ("plain number", 1.0, 0.0),
        ("currency", 1.0, 0.0),
        ("plain number", 0.0, 1.0),
        ("fraction or decimal", 1.0, 0.0),
    ]


@pytest.mark.parametrize(
    ("line", "arguments", "said"),
    [
        ('{"task": "a", "generation": "", "gold": "1"}', ["--task", "x"], "task 'x'; it has a"),
        ('{"generation": "", "gold": "1"}', ["--task", "x"], "task 'x'; it has no tasks"),
        ('{"generation": "", "gold": "1"', [], "cannot read .*: Expecting ',' delimiter"),
        (
            '{"generation": "", "gold": "one"}',
            ["--graders", "math", "gsm8k"],
            "gsm8k cannot grade these lines .*must hold a number",
        ),
        (
            '{"generation": "", "gold": "1"}',
            ["--graders", "math", "countdown"],
            "countdown cannot grade these lines .*needs the column 'numbers' and 'target'",
        ),
    ],
)
def test_lines_that_cannot_be_used(tmp_path: Path, line: str, arguments: list[str], said: str):
    source = tmp_path / "generations.jsonl"
    source.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=said):
        runpy.run_path(str(SCRIPT))["main"]([str(source), *arguments])


def test_no_file(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"cannot read .*No such file"):
        runpy.run_path(str(SCRIPT))["main"]([str(tmp_path / "nowhere.jsonl")])
