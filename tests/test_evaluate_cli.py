"""`python -m rl.evaluate`: what it writes, and how it tells mistakes."""

import json
from pathlib import Path

import pytest

from rewards import REWARDS
from rl import evaluate as cli
from rl.intervals import Accuracy
from rl.models.loading import load, save_native
from rl.models.source import ModelSource
from rl.recipe import load_recipe
from tests.tiny_models import SMALL_BERT


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    loaded = load(ModelSource(name="bert", config=SMALL_BERT), training=False, seed=3)
    save_native(loaded.model, loaded.tokenizer, tmp_path / "model")
    path = tmp_path / "recipe.yaml"
    path.write_text(
        f"""
kind: sft
model: {{name: bert, path: {tmp_path / "model"}}}
task: {{name: free_sudoku4}}
sampler: {{name: low_confidence, steps: 16}}
sft: {{pad_to: 16}}
trainer: {{output_dir: {tmp_path / "run"}}}
evaluation: {{prompts: 6, steps: [2, 4], sampled_steps: [8], batch_size: 4}}
"""
    )
    return path


def test_cli_writes_generations_and_metrics(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "result"
    assert cli.main([str(recipe), "--out", str(folder)]) == 0
    lines = [json.loads(x) for x in (folder / "generations.jsonl").read_text().splitlines()]
    assert len(lines) == 3 * 6
    assert {(x["steps"], x["temperature"]) for x in lines} == {(2, 0.0), (4, 0.0), (8, 1.0)}
    test = load_recipe(recipe).task.rows("test", limit=6)
    for line, row in zip(lines, test * 3, strict=True):
        assert line["id"] == row["id"]
        assert line["prompt"] == row["prompt"]
        assert line["puzzle"] == row["puzzle"]
        assert line["gold"] == row["completion"]
        assert line["nfe"] == line["steps"]
        assert line["status"] == "no_answer"
        assert (
            line["score"]
            == line["strict_score"]
            == REWARDS["sudoku"](line["completion"], puzzle=row["puzzle"])
        )
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["prompts"] == 6
    assert metrics["split"] == "test"
    assert metrics["model"] == str(tmp_path / "model")
    found = metrics["accuracy"]["greedy"]["4"]
    assert found["total"] == found["strict"]["total"] == 6
    assert sum(found["answers"].values()) - found["answers"]["several_boxes"] == pytest.approx(1)
    assert found["high"] == pytest.approx(Accuracy(correct=found["correct"], total=6).high)
    shown = capsys.readouterr().out
    assert "greedy" in shown
    assert "sampled" in shown

    with pytest.raises(SystemExit, match="2"):  # two models in one file could not be told apart
        cli.main([str(recipe), "--out", str(folder)])
    assert "generations.jsonl is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("evaluation.steps=[5000]", "evaluation.steps: steps 5000 do not fit"),
        ("sft.pad_to=longest", "sft.pad_to is longest; an evaluation needs a number"),
        ("sampler=null", "sampler"),
    ],
)
def test_cli_tells_mistakes(
    recipe: Path, override: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main([str(recipe), override])
    assert message in capsys.readouterr().err
