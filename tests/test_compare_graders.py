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


def test_a_task_that_no_line_has(tmp_path: Path):
    source = tmp_path / "generations.jsonl"
    source.write_text('{"generation": "", "ground_truth": "1"}\n')
    with pytest.raises(SystemExit, match="no line with task 'x'"):
        runpy.run_path(str(SCRIPT))["main"]([str(source), "--task", "x"])
