"""Every published method, from its name in a recipe to an update by the real trainer."""

import json
import math
from pathlib import Path

import pytest
import torch

from estimators import Estimate, MaskPlan, Sequences
from rl.costs import phases
from rl.methods import METHODS
from rl.preparation import prepare
from rl.recipe import RecipeError, load_recipe
from rl.recipe_checks import check_recipe
from rl.session import Session
from rl.trainer import DiffusionGRPOTrainer

from .conftest import steps, weights

RECIPE = """\
method: {method}
model: {{name: bert, path: "{model}"}}
{source}
trainer:
  output_dir: out
  save_strategy: "no"
  max_steps: 1
  per_device_train_batch_size: 8
  max_completion_length: 8
  learning_rate: 1e-2
  disable_tqdm: true
  num_generations: 4
  num_iterations: 2
"""
WRITTEN = """\
task: {name: free_sudoku4, train_size: 16}
rewards: ["reward.py:letters"]
sampler: {steps: 4}
"""
RECORDED = "task: {name: preference_pairs, path: pairs.jsonl}"
REWARD = "def letters(completion, **columns): return sum(map(ord, completion)) % 7 / 7\n"
OVERRIDES = {
    "vrpo": ["trainer.num_generations=2"],
    "mdpo": ["rollout.kept=3", "sampler.temperature=1"],  # of four steps; scale of the logits
    "d_tree_rpo": ["rollout.branching=[2, 2]"],  # one for each of four completions
    "last_step_tree": ["rollout.branching=[2, 2]"],
}
NO_EQUAL_VIEWS = ("gdpo", "spg", "stable_drl")  # others have some, which are run once
RUNNABLE = [method for method in METHODS if method != "d2_any_order"]


@pytest.fixture
def recipe(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("reward.py").write_text(REWARD)
    pairs = [{"prompt": f"{i}=", "chosen": "1234"[: 1 + i % 4], "rejected": "43"} for i in range(9)]
    Path("pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))

    def recipe(method: str, *overrides: str):
        source = RECORDED if method == "vrpo" else WRITTEN
        Path("R.yaml").write_text(RECIPE.format(method=method, model=tiny_bert, source=source))
        return load_recipe("R.yaml", [*OVERRIDES.get(method, []), *overrides])

    return recipe


def check_old_is_current(trainer: DiffusionGRPOTrainer) -> None:
    """Log-probs of a rollout do not depend on the order of its rows, or on how many run at once."""
    batch = next(iter(trainer.get_train_dataloader()))
    experience = trainer.roller(batch, trainer.model_wrapped, trainer.state)
    order = torch.randperm(len(experience), generator=torch.Generator().manual_seed(0))
    shuffled = experience.rows(order)
    for k, plan in enumerate(experience.plans):
        (old,) = estimates(trainer, experience.sequences, plan)
        assert bool(old.token_mask.any())
        if experience.old:
            assert_equal(experience.old[k], old, tolerance=0.0)
        for size in (len(order), 3):
            pieces = [shuffled.rows(slice(at, at + size)) for at in range(0, len(order), size)]
            for at, piece in enumerate(pieces):
                (new,) = estimates(trainer, piece.sequences, piece.plans[k])
                assert_equal(new, old.rows(order[at * size : (at + 1) * size]), tolerance=1e-6)


def estimates(
    trainer: DiffusionGRPOTrainer, sequences: Sequences, plan: MaskPlan
) -> tuple[Estimate, ...]:
    return trainer.scorer.estimate_all(trainer.model_wrapped, sequences, [plan])


def assert_equal(a: Estimate, b: Estimate, *, tolerance: float) -> None:
    for x, y in ((a.terms.logp, b.terms.logp), (a.upper_logp, b.upper_logp)):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("method", RUNNABLE)
def test_a_method_trains(recipe, method: str) -> None:
    """A ratio is 1 before the first update, which then moves the weights."""
    bound = recipe(method)
    check_recipe(bound)
    trainer = Session(bound, prepare(bound)).trainer
    check_old_is_current(trainer)
    before = weights(trainer)
    trainer.train()
    (log,) = steps(trainer)
    assert math.isfinite(log["loss"])
    assert log["grad_norm"] > 0
    assert log.get("ratio/mean", 1.0) == pytest.approx(1.0, abs=1e-6)
    assert any(not torch.equal(x, before[name]) for name, x in weights(trainer).items())
    cost = {phase.name: phase.forwards for phase in phases(bound)}
    told, spent = cost["old policy"] + cost["reference"], log["forwards/score"]
    assert spent == told if method in NO_EQUAL_VIEWS else spent <= told
    if method in NO_EQUAL_VIEWS:  # a pass is half of it, and a backward pass is two forwards
        assert log["forwards/update"] == (3 * cost["update"] + cost["replay"]) / 2


def test_any_order_is_refused_before_a_model_is_loaded(recipe) -> None:
    with pytest.raises(RecipeError) as caught:
        check_recipe(recipe("d2_any_order"))
    assert str(caught.value).startswith(
        "R.yaml: estimator: any_order needs an any-order-causal model, and ModelDenoiser has no "
        "in_order: LLaDA and other bidirectional models see what was written later."
    )
