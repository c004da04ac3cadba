"""Whether estimator, objective and rollout scheme fit each other: one loss, without a model.

Two made-up completions of one prompt are planned, given equal scores and compared, exactly as in
training: what would be refused after the first rollout is told before anything is loaded.
"""

import torch

from estimators import PLAIN, RowRandom, Scores, Sequences
from rl.objectives import Totals
from rl.recipe import Recipe


def check_loss(recipe: Recipe, length: int) -> None:
    """Raise the ValueError that the first update would."""
    estimator, objective, scheme = recipe.estimator, recipe.objective, recipe.rollout
    assert estimator is not None
    assert objective is not None
    assert scheme is not None
    _check_grid(recipe)
    steps = length if recipe.sampler is None else recipe.sampler.steps
    decoding = PLAIN if recipe.sampler is None else recipe.sampler.decoding(length)
    seqs = _sequences(length, steps, written=scheme.writes)
    plan = estimator.plan(seqs, RowRandom([0, 1], [2, 2]))
    scores = Scores(
        token=-plan.weight.ne(0).float(),
        choice=None if plan.choice is None else -plan.choice.float(),
    )
    estimate = estimator.combine(seqs, plan, scores, decoding)
    advantages = torch.tensor([1.0, -1.0])
    if scheme.per_token:
        advantages = advantages[:, None].expand(2, length)
    if objective.reweighs:
        logp = estimate.sequence_logp
        objective.reweigh(advantages, logp, logp, 2)
    scored = estimator.scored(seqs)
    totals = Totals(tokens=float(scored.sum()), sequences=2, length=length, statistic=2.0)
    objective(estimate, estimate, estimate, advantages, scored, totals, torch.tensor([0, 0]))


def _check_grid(recipe: Recipe) -> None:
    """A grid of masking ratios is spread over the passes of a rollout."""
    fresh = recipe.trainer.get("fresh_masks", True)
    if getattr(recipe.estimator, "grid", False) and not fresh:
        raise ValueError(
            "estimator.grid spreads its masking ratios over the passes of a rollout, but "
            "trainer.fresh_masks is false, so that all passes share one; set one of them otherwise"
        )


def _sequences(length: int, steps: int, *, written: bool) -> Sequences:
    """Two rows; as a sampler records them, from left to right, or as they are found in a file."""
    place = torch.arange(length).expand(2, -1)
    recorded = {
        "step_map": place * steps // length,
        "order_map": torch.zeros_like(place),
        "block_map": torch.zeros_like(place),
        "rollout_logp": -torch.ones(2, length),
        "entropy": torch.ones(2, length),
    }
    prompt = torch.zeros(2, 1, dtype=torch.long)
    return Sequences(
        prompt_ids=prompt,
        prompt_mask=prompt == 0,
        completion_ids=torch.zeros_like(place),
        completion_mask=place >= 0,
        **(recorded if written else {}),
    )
