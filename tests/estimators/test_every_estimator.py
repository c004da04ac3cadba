"""What holds for every estimator, whatever it masks."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from estimators import (
    ESTIMATORS,
    AnyOrder,
    Coupled,
    Decoding,
    Denoiser,
    Elbo,
    Estimate,
    Estimator,
    InformedElbo,
    LeftToRight,
    MaskPlan,
    MeanField,
    PredictedX0,
    Quadrature,
    RandomMask,
    Sandwich,
    SemiArElbo,
    Sequences,
    Trajectory,
    TrajectorySubset,
)
from tests.estimators.any_order_model import AnyOrderTiny
from tests.tiny_models import (
    TinyDenoiser,
    bert,
    llama,
    pad_left,
    random_rows,
    sequences,
)

EVERY = {
    "mean_field": MeanField(prompt_mask_prob=0.5),
    "mean_field by row": MeanField(prompt_mask_prob=0.5, share_prompt_mask="row"),
    "elbo": Elbo(samples=2),
    "elbo over rows": Elbo(samples=2, stratify_rows=True),
    "coupled elbo": Elbo(samples=2, coupled=True),
    "stratified elbo": Elbo(samples=3, stratified=True),
    "bernoulli elbo": Elbo(samples=2, law="bernoulli", min_ratio=0.1),
    "flat coupled elbo": Elbo(samples=2, coupled=True, weighting="flat"),
    "quadrature": Quadrature(nodes=2),
    "bernoulli quadrature": Quadrature(nodes=3, law="bernoulli"),
    "semi_ar_elbo": SemiArElbo(block_length=2, samples=2, context_mask_prob=0.3),
    "semi_ar_elbo of every block": SemiArElbo(block_length=2, blocks="every"),
    "informed_elbo": InformedElbo(samples=2),
    "corrected informed_elbo": InformedElbo(samples=2, strength=0.5, corrected=True),
    "sandwich": Sandwich(block_length=2, context_mask_prob=0.3),
    "random_mask": RandomMask(),
    "random_mask on a grid": RandomMask(grid=True, min_ratio=0.2),
    "flat coupled random_mask": RandomMask(coupled=True, weighting="flat"),
    "coupled": Coupled(),
    "trajectory": Trajectory(segments=None),
    "merged trajectory": Trajectory(segments=2),
    "trajectory of step means": Trajectory(segments=None, step_mean=True),
    "trajectory with selection": Trajectory(segments=None, selection=1.0),
    "trajectory_subset": TrajectorySubset(m=2),
    "trajectory_subset by uncertainty": TrajectorySubset(m=2, by="uncertainty"),
    "trajectory_subset by entropy": TrajectorySubset(m=2, by="highest_entropy", importance=False),
    "trajectory_subset after one step": TrajectorySubset(m=2, baseline="one_step"),
    "left_to_right": LeftToRight(),
    "left_to_right in part": LeftToRight(subset=2),
    "left_to_right by entropy": LeftToRight(top_entropy=0.5),
    "any_order": AnyOrder(),
    "predicted_x0": PredictedX0(confidence=True),
}
every_estimator = pytest.mark.parametrize("est", EVERY.values(), ids=EVERY)
SEEDS, GROUPS = [1, 2, 3, 4], [8, 8, 9, 9]


def batch() -> Sequences:
    """Two groups of two; rows of different lengths and numbers of steps."""
    record = torch.rand(4, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    seqs = sequences(
        [[1, 2, 0, 2], [2, 1, 1, 1], [1, 0, 1, 2], [2, 2, 2, 0]],
        prompts=[[1, 2, 1], [1, 2, 1], [2, 2, 1], [2, 2, 1]],
        step_map=[[0, 1, 2, 3], [2, 0, 1, 1], [1, 1, 0, 0], [3, 2, 1, 0]],
    )
    order = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0]])
    return replace(seqs, order_map=order, rollout_logp=-record, entropy=record.flip(1))


def pick(values: list[int], index: list[int]) -> list[int]:
    return [values[i] for i in index]


def planned(est: Estimator, seqs: Sequences, index: list[int] | None = None) -> MaskPlan:
    """The plan of `seqs`, rows `index` of the batch, drawn for them alone."""
    index = index or [0, 1, 2, 3]
    return est.plan(seqs, random_rows(*pick(SEEDS, index), groups=pick(GROUPS, index)))


def test_the_registry_holds_every_estimator() -> None:
    assert set(ESTIMATORS.values()) == {type(est) for est in EVERY.values()}
    for estimator in ESTIMATORS.values():
        assert all(
            getattr(estimator, name) for name in ("paper", "estimates", "level", "cost", "scores")
        )


def denoiser_for(est: Estimator, make) -> Denoiser:
    """AnyOrder asks for a model of its own kind, of which there is one."""
    return AnyOrderTiny() if isinstance(est, AnyOrder) else make()


# A rule whose choice of positions has a probability, for estimators that include it
DECODING = Decoding(rule="low_confidence", temperature=0.8)


@every_estimator
def test_the_ratio_is_one_however_rows_are_grouped(est: Estimator) -> None:
    """Rows drawn and scored with others against the same rows apart, reordered and padded."""
    assert_grouping_changes_nothing(est, denoiser_for(est, TinyDenoiser), atol=1e-12)


@pytest.mark.parametrize("make", [bert, llama])
@pytest.mark.parametrize("name", ["mean_field", "coupled elbo", "sandwich", "trajectory"])
def test_the_ratio_of_a_transformer_is_one_however_rows_are_grouped(name: str, make) -> None:
    assert_grouping_changes_nothing(EVERY[name], make(), atol=1e-5)


def assert_grouping_changes_nothing(est: Estimator, denoiser: Denoiser, *, atol: float) -> None:
    seqs = batch()
    plan = planned(est, seqs)
    old = est(denoiser, seqs, plan, DECODING)
    assert_equal(est(denoiser, seqs, plan, DECODING), old, atol=0.0)
    for index in ([2], [3, 0], [1, 3, 2, 0]):
        rows = torch.tensor(index)
        split = est(denoiser, seqs.rows(rows), plan.rows(rows), DECODING)
        apart = pad_left(seqs.rows(rows), 2)
        redrawn = est(denoiser, apart, planned(est, apart, index), DECODING)
        for new in (split, redrawn):
            assert_equal(new, old.rows(rows), atol=atol)


def assert_equal(new: Estimate, old: Estimate, *, atol: float) -> None:
    assert torch.equal(new.token_mask, old.token_mask)
    pairs = [(new.token_weight, old.token_weight), (new.token_logp, old.token_logp)]
    if old.upper_logp is not None and new.upper_logp is not None:
        pairs.append((new.upper_logp, old.upper_logp))
    if old.choice_logp is not None and new.choice_logp is not None:
        pairs.append((new.choice_logp.sum(1), old.choice_logp.sum(1)))
    for one, other in [*pairs, (new.sequence_logp, old.sequence_logp)]:
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


@every_estimator
def test_gradient_reaches_the_parameters(est: Estimator) -> None:
    """Slope along a random direction against a central difference."""
    model, seqs = denoiser_for(est, TinyDenoiser), batch()
    assert isinstance(model, TinyDenoiser)
    plan = planned(est, seqs)
    share = torch.tensor([1.0, -0.5, 2.0, 0.3], dtype=torch.float64)

    def value() -> Tensor:
        found = est(model, seqs, plan, DECODING)
        upper = 0.0 if found.upper_logp is None else found.upper_logp.sum(1)
        return ((found.sequence_logp + upper) * share).sum()

    value().backward()
    for weight in (model.E, model.W):
        direction = torch.randn(
            weight.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64
        )
        assert weight.grad is not None
        slope = (weight.grad * direction).sum()
        h = 1e-5
        with torch.no_grad():
            weight += h * direction
            up = value()
            weight -= 2 * h * direction
            down = value()
            weight += h * direction
        assert slope.abs() > 1e-2
        torch.testing.assert_close(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-6)


@every_estimator
def test_a_plan_has_the_stated_number_of_views_and_runs_no_more(est: Estimator) -> None:
    """Four tokens in at most four steps; a view that scores nothing is not run."""
    model, seqs = denoiser_for(est, TinyDenoiser), batch()
    assert isinstance(model, TinyDenoiser)
    plan = planned(est, seqs)
    assert plan.weight.shape[1] == est.views(length=4, steps=4)
    est(model, seqs, plan, DECODING)
    ran = sum(len(ids) for ids in model.seen)
    assert ran == int(plan.weight.ne(0).any(-1).sum())


NEVER_EMPTY = [
    "mean_field", "elbo", "stratified elbo", "quadrature", "semi_ar_elbo", "sandwich",
    "semi_ar_elbo of every block", "random_mask", "random_mask on a grid", "trajectory",
    "merged trajectory", "trajectory with selection", "trajectory_subset by entropy",
    "left_to_right", "left_to_right in part", "left_to_right by entropy", "any_order",
    "predicted_x0",
]  # fmt: skip


@pytest.mark.parametrize("name", NEVER_EMPTY)
def test_the_cost_is_the_number_of_views_per_completion(name: str) -> None:
    """Completions without EOS, written one token at a time."""
    est = EVERY[name]
    model = denoiser_for(est, TinyDenoiser)
    assert isinstance(model, TinyDenoiser)
    whole = sequences([[1, 2, 1, 2]] * 3, step_map=[[3, 0, 1, 2]] * 3)
    seqs = replace(whole, rollout_logp=-torch.ones(3, 4), entropy=torch.rand(3, 4))
    est(model, seqs, est.plan(seqs, random_rows(1, 2, 3)), DECODING)
    assert sum(len(ids) for ids in model.seen) == 3 * est.views(length=4, steps=4)


@every_estimator
def test_views_one_at_a_time_are_the_views_together(est: Estimator) -> None:
    """`run` on a slice of the plan, as gradients in little memory need it."""
    denoiser, seqs = denoiser_for(est, TinyDenoiser), batch()
    plan = planned(est, seqs)
    together = est.run(denoiser, seqs, plan, DECODING)
    for m in range(plan.weight.shape[1]):
        part = est.run(denoiser, seqs, plan.views(slice(m, m + 1)), DECODING)
        torch.testing.assert_close(part.token[:, 0], together.token[:, m], rtol=0, atol=1e-12)
        if together.choice is not None and part.choice is not None:
            torch.testing.assert_close(part.choice[:, 0], together.choice[:, m])


@every_estimator
def test_an_estimate_is_linear_in_the_scores_if_it_says_so(est: Estimator) -> None:
    model, seqs = denoiser_for(est, TinyDenoiser), batch()
    plan = planned(est, seqs)
    scores = est.run(model, seqs, plan, DECODING)
    once = est.combine(seqs, plan, scores, DECODING)
    twice = est.combine(seqs, plan, replace(scores, token=2 * scores.token), DECODING)
    torch.testing.assert_close(twice.token_logp, 2 * once.token_logp)
    more = once.upper_logp is not None or once.choice_logp is not None
    assert est.linear is not more
