"""Methods that score the denoising steps that the sampler took."""

from .base import Method

WD1PP = Method(
    title="wd1++, weighted likelihood of recorded steps",
    paper="arXiv:2507.08838",
    repository="xiaohangt/wd1",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={"name": "trajectory", "segments": 8, "at_rollout_temperature": False},
    objective={"name": "policy_gradient", "aggregation": "sequence_sum"},
    advantage={"baseline": "mean", "scale": "none", "weighting": "softmax"},
    trainer={"num_generations": 6, "num_iterations": 12, "learning_rate": 3e-6},
    notes=(
        "The released wd1++ is built into MDPO's trainer and weighs the predictions at sampled "
        "steps; here the tokens that 8 segments of the rollout committed are weighed.",
    ),
)

D2_STEP_MERGE = Method(
    title="d2-StepMerge",
    paper="arXiv:2509.21474",
    repository="kuleshov-group/d2",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={"name": "trajectory", "segments": 8, "at_rollout_temperature": False},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.5,
        "beta": 0.04,
        "kl": "k3",
        "aggregation": "token_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 6, "num_iterations": 12, "learning_rate": 3e-6},
    notes=(
        "8 segments on GSM8K; the paper uses 16 on Countdown.",
        "The released code still masks prompt tokens with probability 0.15, which the paper's "
        "estimate does not have; prompts are shown whole here.",
        "Scores are at temperature 1 although rollouts are not, as published.",
    ),
)

TRACE_RL = Method(
    title="TraceRL, of dLLM-RL",
    paper="arXiv:2509.06949",
    repository="Gen-Verse/dLLM-RL",
    sampler={"name": "low_confidence", "temperature": 0.8},
    estimator={
        "name": "trajectory",
        "segments": 16,
        "step_mean": True,
        "at_rollout_temperature": False,
    },
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.2,
        "beta": 0.01,
        "kl": "k3",
        "kl_to": "old",
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 8, "num_iterations": 1, "learning_rate": 1e-6},
    notes=(
        "16 segments merge 8 of 128 steps, as for LLaDA (none for SDAR); each weighs the same.",
        "The code sums the KL term and averages the rest; both are averaged here.",
        "The diffusion value model is optional in the paper and not included.",
        "Group size and learning rate are common values, not those of the released runs.",
    ),
)

CJ_GRPO = Method(
    title="CJ-GRPO, consistent trajectory",
    paper="arXiv:2509.23924",
    repository="yjyddq/EOSER-ASS-RL",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={
        "name": "trajectory",
        "segments": None,
        "step_mean": True,
        "at_rollout_temperature": False,
    },
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.5,
        "beta": 0.04,
        "kl": "k3",
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 6, "num_iterations": 12, "learning_rate": 3e-6},
    notes=(
        "One forward per step. The paper makes that affordable by an ascending step size and by "
        "rejecting early EOS, which are no samplers here; use few sampler.steps.",
    ),
)

AGRPO = Method(
    title="AGRPO, unbiased sampling of recorded steps",
    paper="arXiv:2510.04019",
    repository="probablyabot/agrpo",
    sampler={"name": "random", "temperature": 0.6, "top_p": 0.99, "top_k": 150},
    estimator={"name": "trajectory_subset", "m": 24, "by": "uniform"},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.2,
        "beta": 0.0,
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 8, "num_iterations": 1, "learning_rate": 5e-6},
    notes=(
        "Positions are committed in random order, for which the product of token probabilities "
        "is that of the step; the paper does it in blocks of 12 (sampler.block_length).",
        "Steps are drawn with stratification; by: entropy is the code's other choice.",
        "Steps after EOS are dropped in the paper; here they are actions like the others.",
    ),
)

EGSPO = Method(
    title="EGSPO, entropy-selected steps",
    paper="arXiv:2603.12554",
    repository="vishnutez/egspo-dllm-rl",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={
        "name": "trajectory_subset",
        "m": 8,
        "by": "highest_entropy",
        "importance": False,
        "at_rollout_temperature": False,
    },
    objective={
        "name": "clipped",
        "level": "step",
        "epsilon": 0.2,
        "epsilon_high": 0.5,
        "beta": 0.04,
        "kl": "k3",
        "aggregation": "token_mean",
    },
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 8, "num_iterations": 1, "learning_rate": 3e-5},
    notes=(
        "Steps of highest entropy, without a correction: biased, as published. The loss is divided "
        "by all tokens, those of other steps too: its scale, not its direction, depends on m.",
        "The step-wise advantages of EGSPO-SA, from one-shot completions, are not included.",
    ),
)

RLDF = Method(
    title="RLDF, of Drift: sampled recorded steps",
    paper="arXiv:2605.25638",
    repository="ant-research/Drift",
    sampler={"name": "threshold", "threshold": 0.9, "temperature": 1.0},
    estimator={"name": "trajectory_subset", "m": 4, "by": "uncertainty", "importance": False},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.2,
        "beta": 0.01,
        "kl": "k3",
        "aggregation": "token_mean",
    },
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 4, "num_iterations": 1, "learning_rate": 1e-6},
    notes=(
        "Steps with improbable tokens are drawn more often, without a correction, as published; "
        "importance: true would correct it. The loss is divided by all tokens, as in egspo.",
        "Everything decoded at a drawn step or after it is masked, and the tokens decoded there "
        "are scored; the code's other target, a clipped clean state, is not included.",
    ),
)

MASK_AWARE_PG = Method(
    title="mask-aware policy gradient",
    paper="arXiv:2607.15200",
    sampler={"name": "plackett_luce", "position_temperature": 0.5, "temperature": 0.9},
    estimator={"name": "trajectory_subset", "segments": 32, "m": 12, "selection": 1.0},
    objective={
        "name": "clipped",
        "level": "sequence",
        "epsilon": 0.2,
        "epsilon_choice": 0.2,
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 6, "num_iterations": 12, "learning_rate": 3e-6},
    notes=(
        "12 of 32 merged segments are scored, as published. With estimator.segments: null nothing "
        "is merged, and the estimate is exact in the mean, positions included.",
        "We know no code; clip bounds, group size and passes are common values.",
    ),
)

D_TREE_RPO = Method(
    title="d-TreeRPO, tree rollouts",
    paper="arXiv:2512.09675",
    repository="THU-BPM/d-TreeRPO",
    sampler={"name": "low_confidence", "temperature": 0.9},
    rollout={"name": "tree", "branching": [4, 4], "weight": "node"},
    estimator={"name": "trajectory", "segments": 2, "at_rollout_temperature": False},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.4,
        "beta": 0.01,
        "kl": "k3",
        "aggregation": "token_mean",
    },
    advantage={"baseline": "leave_one_out", "scale": "none"},
    trainer={"num_generations": 16, "num_iterations": 12, "learning_rate": 3e-5},
    notes=(
        "Every node of the tree counts once, as in the code; rollout.weight: path is the policy "
        "gradient. trainer.num_generations is the product of branching.",
        "The code takes the tokens that changed for those whose log-prob is not 0, and so drops "
        "tokens of probability 1; here they are known from the recorded steps.",
        "The self-distillation loss of later training is not included; objective.distill is "
        "similar.",
    ),
)

MDPO = Method(
    title="MDPO, rewards of intermediate predictions",
    paper="arXiv:2508.13148",
    repository="autonomousvision/mdpo",
    sampler={"name": "low_confidence", "temperature": 0.1},
    rollout={"name": "intermediate", "kept": 8},
    estimator={"name": "predicted_x0", "confidence": True},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.2,
        "beta": 0.02,
        "kl": "k2",
        "aggregation": "sequence_sum",
    },
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 4, "num_iterations": 1, "learning_rate": 1e-5},
    notes=(
        "beta 0.02 is the paper's; the released configuration has no KL term, and keeps 16 steps "
        "instead of 8. rollout.kept is at most sampler.steps.",
        "Steps are kept by the sum of |A| over a prompt's completions; the code sums over the "
        "batch of a rank.",
    ),
)
