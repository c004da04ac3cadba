"""What is compared by default. A label is a setting in a few words."""

from estimators import (
    ESTIMATORS,
    Coupled,
    Elbo,
    Estimator,
    InformedElbo,
    LeftToRight,
    MeanField,
    Quadrature,
    RandomMask,
    Sandwich,
    SemiArElbo,
    Trajectory,
    TrajectorySubset,
)
from rl.samplers import (
    ConfidenceFirst,
    LowConfidence,
    PlackettLuce,
    RandomOrder,
    Sampler,
    Threshold,
)
from rl.samplers import LeftToRight as InReadingOrder

from .measure import Contender, by_sign

# On the tiny network: 4 tokens; blocks are of 2.
SAMPLERS_COMPARED: dict[str, Sampler] = {
    "random": RandomOrder(steps=4),
    "left_to_right": InReadingOrder(steps=4),
    "confidence_first": ConfidenceFirst(steps=4),
    "plackett_luce": PlackettLuce(steps=4),
    "low_confidence": LowConfidence(steps=4),
    "low_confidence, 2 a step": LowConfidence(steps=2),
    "low_confidence, blocks of 2": LowConfidence(steps=4, block_length=2),
    "threshold 0.5": Threshold(steps=4, threshold=0.5),
}

SPG = Sandwich(block_length=None, context_mask_prob=0.0)

ESTIMATORS_COMPARED: dict[str, Estimator | Contender] = {
    # one step
    "mean_field": MeanField(prompt_mask_prob=0.0),
    "mean_field, prompt masked (d1)": MeanField(),
    # random masks
    "random_mask (UniGRPO)": RandomMask(),
    "random_mask, flat": RandomMask(weighting="flat"),
    "coupled (coupled-GRPO)": Coupled(),
    "elbo, 1/t": Elbo(law="bernoulli"),
    "elbo": Elbo(),
    "elbo, 2": Elbo(samples=2),
    "elbo, 4": Elbo(samples=4),
    "elbo, 4 stratified (VRPO)": Elbo(samples=4, stratified=True),
    "elbo, pair (ESPO)": Elbo(coupled=True),
    "elbo, 2 pairs stratified": Elbo(samples=2, coupled=True, stratified=True),
    "quadrature, 2 nodes (GDPO)": Quadrature(nodes=2),
    "quadrature, 3 nodes (GDPO)": Quadrature(nodes=3),
    "quadrature, 2 nodes, bernoulli": Quadrature(nodes=2, law="bernoulli"),
    "semi_ar_elbo, blocks of 2": SemiArElbo(block_length=2),
    "informed_elbo": InformedElbo(),
    "sandwich, mixture (SPG)": Contender(estimator=SPG, surrogate=by_sign("mixture")),
    "sandwich, upper (SPG)": Contender(estimator=SPG, surrogate=by_sign("upper")),
    # the recorded steps
    "trajectory, 2 segments (d2)": Trajectory(segments=2),
    "trajectory": Trajectory(segments=None),
    "trajectory, selection": Trajectory(segments=None, selection=1.0),
    "trajectory, step means (CJ-GRPO)": Trajectory(segments=None, step_mean=True),
    "trajectory_subset, 1 (AGRPO)": TrajectorySubset(m=1),
    "trajectory_subset, 2 (AGRPO)": TrajectorySubset(m=2),
    "trajectory_subset, 2, baseline": TrajectorySubset(m=2, baseline="one_step"),
    "trajectory_subset, 2, selection": TrajectorySubset(m=2, selection=1.0),
    # reading order
    "left_to_right (JustGRPO)": LeftToRight(),
    "left_to_right, 2 tokens": LeftToRight(subset=2),
}

QUICK_ESTIMATORS = ("mean_field", "elbo", "trajectory", "trajectory, selection")
QUICK_SAMPLERS = ("random", "low_confidence")

# On the Markov chain, where trajectories are left to right and exact.
NOISE_COMPARED = (
    "mean_field",
    "random_mask, flat",
    "coupled (coupled-GRPO)",
    "elbo, 1/t",
    "elbo",
    "elbo, 2",
    "elbo, 4",
    "elbo, 4 stratified (VRPO)",
    "elbo, pair (ESPO)",
    "elbo, 2 pairs stratified",
    "quadrature, 2 nodes (GDPO)",
    "quadrature, 3 nodes (GDPO)",
    "quadrature, 2 nodes, bernoulli",
    "trajectory_subset, 2 (AGRPO)",
    "trajectory_subset, 2, baseline",
    "left_to_right, 2 tokens",
)


# On a checkpoint, with completions of some hundred tokens.
CHECKPOINT_COMPARED: dict[str, Estimator] = {
    "mean_field": MeanField(prompt_mask_prob=0.0),
    "mean_field, prompt masked (d1)": MeanField(),
    "random_mask (UniGRPO)": RandomMask(),
    "coupled (coupled-GRPO)": Coupled(),
    "elbo": Elbo(),
    "elbo, 4 stratified (VRPO)": Elbo(samples=4, stratified=True),
    "elbo, pair (ESPO)": Elbo(coupled=True),
    "quadrature, 2 nodes (GDPO)": Quadrature(nodes=2),
    "trajectory, 8 segments (d2)": Trajectory(),
    "trajectory": Trajectory(segments=None),
    "trajectory, selection": Trajectory(segments=None, selection=1.0),
    "trajectory_subset, 8 (AGRPO)": TrajectorySubset(m=8),
    "trajectory_subset, 8, baseline": TrajectorySubset(m=8, baseline="one_step"),
    "left_to_right, 8 tokens": LeftToRight(subset=8),
}


def family(estimator: Estimator) -> str:
    """The group of estimators that one colour stands for."""
    name = type(estimator).__module__.rpartition(".")[-1]
    if name == "mean_field":
        return "one step"
    if name in ("trajectory", "trajectory_subset", "predicted_x0"):
        return "recorded steps"
    if name == "left_to_right":
        return "reading order"
    return "random masks" if type(estimator) in ESTIMATORS.values() else "yours"
