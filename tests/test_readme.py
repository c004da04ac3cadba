"""The front page: its tables are the code's own, and its example runs as it stands."""

import re
import runpy
from pathlib import Path

import pytest

import rl.train
from rl.methods import METHODS
from rl.models.tiny_checkpoint import make_tiny_checkpoint

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLES = runpy.run_path(str(ROOT / "scripts" / "readme_tables.py"))

RECIPE = """\
model: {name: roberta_prelayernorm, path: model}
task: {name: free_sudoku4, train_size: 16, test_size: 8, validation_size: 4}
rewards: [sudoku]
sampler: {name: low_confidence, steps: 4}
objective: clipped
trainer:
  output_dir: out
  max_steps: 1
  per_device_train_batch_size: 8
  num_generations: 4
  max_completion_length: 16
"""


@pytest.mark.parametrize("path", TABLES["FILES"], ids=lambda path: path.name)
def test_tables_are_what_the_script_writes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert TABLES["filled"](text) == text, "run python scripts/readme_tables.py --write"


def test_the_number_of_methods() -> None:
    assert f"\n{len(METHODS) - 1} published methods, and `last_step_tree`" in README


def test_every_table_is_in_a_file_once() -> None:
    texts = [path.read_text(encoding="utf-8") for path in TABLES["FILES"]]
    found = re.findall(r"<!-- table: (\w+) -->", "".join(texts))
    assert sorted(found) == sorted(TABLES["TABLES"])


def test_a_table_that_was_edited_by_hand_is_noticed() -> None:
    edited = README.replace("| `mean_field` |", "| `mean_feild` |")
    assert edited != README
    assert TABLES["filled"](edited) == README


def blocks(heading: str, language: str) -> list[str]:
    """The fenced blocks of one language below a heading, up to the next one."""
    (section,) = re.findall(rf"^##+ {heading}\n(.*?)(?=^##+ |\Z)", README, re.M | re.S)
    return re.findall(rf"```{language}\n(.*?)```", section, re.S)


def test_the_readmes_estimator_trains(tmp_path: Path, monkeypatch, capsys) -> None:
    (code,), (section,) = (blocks("Your own estimator", x) for x in ("python", "yaml"))
    monkeypatch.chdir(tmp_path)
    make_tiny_checkpoint("roberta_prelayernorm", tmp_path / "model")
    Path(code.splitlines()[0].removeprefix("# ")).write_text(code)
    Path("R.yaml").write_text(RECIPE + section)
    assert rl.train.main(["R.yaml"]) == 0
    assert "Halves scores each token beside some of the others; " in capsys.readouterr().out
    assert rl.train.main(["--explain", "R.yaml"]) == 0
    assert "2 views x 1 pass" in capsys.readouterr().out
