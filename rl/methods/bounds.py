"""Methods whose value is a bound of log p(completion | prompt), from random masks."""

from .base import Method

UNIGRPO = Method(
    title="UniGRPO, of MMaDA",
    paper="arXiv:2505.15809",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={"name": "random_mask", "weighting": "masked_mean", "grid": True},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.2,
        "beta": 0.04,
        "kl": "k3",
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 8, "num_iterations": 4, "learning_rate": 1e-6},
    notes=(
        "The masking ratios of the passes are spread evenly, from a random one up to the full "
        "mask. With grid: false each pass draws its ratio uniformly, and the mean over masked "
        "tokens is exactly the lower bound divided by the length.",
        "The RL code was not released; clip, KL weight, group size, passes and learning rate are "
        "common values of GRPO.",
    ),
)

VRPO = Method(
    title="VRPO, of LLaDA 1.5: DPO on lower bounds",
    paper="arXiv:2505.19223",
    rollout={"name": "recorded"},
    estimator={"name": "elbo", "law": "count", "samples": 8},
    objective={"name": "preference", "beta_dpo": 0.2},
    trainer={"num_generations": 2, "num_iterations": 1, "learning_rate": 5e-7},
    notes=(
        "One mask per masking ratio, and the same masks for policy and reference, as the paper "
        "has it. The training code was not released; we could not check beta_dpo and the learning "
        "rate.",
        "The completions are pairs of a data set: task preference_pairs.",
    ),
)

SPG = Method(
    title="SPG, sandwiched policy gradient",
    paper="arXiv:2510.09541",
    repository="facebookresearch/SPG",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={
        "name": "sandwich",
        "samples": 2,
        "exponent": 1.5,
        "block_length": 32,
        "context_mask_prob": 0.15,
    },
    objective={
        "name": "policy_gradient",
        "negative": "mixture",
        "mixture_weight": 0.5,
        "aggregation": "token_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 6, "num_iterations": 4, "learning_rate": 3e-6},
    notes=(
        "One block is masked at random, earlier ones are shown and later ones are masked but not "
        "scored, as in the paper; the code computes that block mask and does not apply it, so "
        "that later blocks are scored too.",
        "exponent 1.5 is the paper's beta for the mixture (1.0 for Sudoku, 2.0 for the upper "
        "bound alone on Countdown); temperature 0.3 for Sudoku.",
        "Four updates use the same rollouts without a correction, as published.",
    ),
)

GDPO = Method(
    title="GDPO, quadrature over masking ratios",
    paper="arXiv:2510.08554",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={"name": "quadrature", "nodes": 2, "law": "count"},
    objective={
        "name": "clipped",
        "level": "sequence",
        "normalize_ratio": "none",
        "epsilon": 0.2,
        "beta": 0.04,
        "kl": "k2",
        "kl_level": "sequence",
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 6, "num_iterations": 8, "learning_rate": 5e-7},
    notes=(
        "Exactly round(L t) tokens are masked at node t, as implemented; law: bernoulli masks "
        "each token with probability t, as in the theory.",
        "We know no code of the authors; clip bound, KL weight and passes are our reading.",
        "The ratio is that of whole sequences, not divided by their length: keep the learning "
        "rate small.",
    ),
)

BGPO = Method(
    title="BGPO, boundary-guided linear bound",
    paper="arXiv:2510.11683",
    repository="THU-KEG/BGPO",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={"name": "elbo", "law": "count", "samples": 16},
    objective={"name": "linear_bound", "beta": 0.0, "aggregation": "sequence_sum"},
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 8, "num_iterations": 1, "learning_rate": 5e-7},
    notes=(
        "samples is 32 for Sudoku in the paper.",
        "A re-implementation (DARE) writes the bound for A > 0 as exp(log(1 + d)), which is no "
        "number for d <= -1, and clips it; the paper's 1 + d is used here, unclipped.",
    ),
)

ESPO = Method(
    title="ESPO, sequence-level ratio of lower bounds",
    paper="arXiv:2512.03759",
    repository="ML-GSAI/ESPO",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={
        "name": "elbo",
        "law": "count",
        "samples": 2,
        "coupled": True,
        "stratify_rows": True,
        "after_eos": "score",
    },
    objective={
        "name": "clipped",
        "level": "sequence",
        "normalize_ratio": "canvas",
        "epsilon": 0.2,
        "beta": 1e-3,
        "kl": "k2",
        "kl_level": "sequence",
        "aggregation": "constant",
    },
    advantage={"baseline": "leave_one_out", "scale": "none"},
    trainer={"num_generations": 6, "num_iterations": 8, "learning_rate": 3e-6},
    notes=(
        "beta is 1e-3 (GSM8K); the released Sudoku run has 1e-2.",
        "Masking ratios are stratified over the draws of all completions of a prompt, in random "
        "order; the code stratifies over the rows of a micro-batch, in theirs.",
        "All tokens of the canvas are scored and counted, also those after EOS, as in the code.",
    ),
)

EBPO = Method(
    title="EBPO, of LLaDA 2.1: block-wise lower bound",
    paper="arXiv:2602.08676",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={"name": "semi_ar_elbo", "samples": 1, "blocks": "every", "block_length": 32},
    objective={
        "name": "clipped",
        "level": "sequence",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 8, "num_iterations": 1, "learning_rate": 1e-6},
    notes=(
        "The report scores all blocks at one noise level in one forward of a block-causal model "
        "(a re-implementation is in DARE). Here every view masks one block, which any model can "
        "do: more forwards, the same mean.",
        "Clip bounds (DAPO's), group size and learning rate are common values, not the report's.",
    ),
)

DMPO = Method(
    title="DMPO, weighted denoising cross-entropy",
    paper="arXiv:2510.08233",
    sampler={"name": "low_confidence", "temperature": 0.2},
    estimator={"name": "elbo", "law": "bernoulli", "min_ratio": 0.1, "samples": 4, "coupled": True},
    objective={"name": "weighted", "alpha": 0.04, "aggregation": "sequence_sum"},
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 16, "num_iterations": 1, "learning_rate": 1e-6},
    notes=(
        "Masking ratios are drawn from [0.1, 1], as the code does; its comment says [0.1, 0.9].",
        "The weights are made from the same draws as the likelihood, not from an estimate of "
        "their own.",
    ),
)

STABLE_DRL = Method(
    title="StableDRL, self-normalised detached weights",
    paper="arXiv:2603.06743",
    repository="JianyuanZhong/StableDRL",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator=SPG.estimator,
    objective={
        "name": "self_normalized",
        "cap": 5.0,
        "negative": "mixture",
        "mixture_weight": 0.5,
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 16, "num_iterations": 2, "learning_rate": 2e-6},
    notes=(
        "The code draws other masks for the old policy than for the current one, and clips the "
        "noise that this makes in the weights; here they share their masks.",
        "The weight's exponent is per token (objective.normalize_ratio: scored), where noise of "
        "hundreds of tokens does not drown it; none takes the sum of the formula as printed.",
    ),
)

DIPOD = Method(
    title="DiPOD, SPG with self-distillation",
    paper="arXiv:2606.13795",
    repository="Astro-Eric/DiPOD-release",
    sampler=SPG.sampler,
    estimator=SPG.estimator,
    objective={**SPG.objective, "distill": 0.05},
    advantage=SPG.advantage,
    trainer=SPG.trainer,
    notes=(
        "The paper adds -0.05 ELBO of the policy's own samples to any policy gradient on bounds: "
        "here to SPG. objective.distill does the same for every other method.",
        "In its second code base (d1), k = floor(u L) never masks everything; law: count draws "
        "1 to L.",
    ),
)

GDSD = Method(
    title="GDSD, squared regression to an advantage-guided teacher",
    paper="arXiv:2605.29398",
    repository="GaryBall/GDSD",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={
        "name": "elbo",
        "law": "count",
        "weighting": "flat",
        "samples": 2,
        "coupled": True,
    },
    objective={
        "name": "squared",
        "psi": 10.0,
        "normalize_ratio": "canvas",
        "beta": 4e-6,
        "kl": "k2",
        "kl_level": "sequence",
        "aggregation": "sequence_sum",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 16, "num_iterations": 8, "learning_rate": 3e-6},
    notes=(
        "psi 10 and the unweighted sum over masked tokens are the code's (the 1/t weight is "
        "commented out there); a comment recommends psi 0.04.",
        "The code clamps the log-ratio of a whole sequence to log(1 +- epsilon) before the "
        "regression, where the gradient is then zero; the paper does not, and neither do we "
        "(objective.stop is the nearest).",
        "beta is the released 1e-3 divided by 256: there the KL term is divided by the length of "
        "the canvas, and the regression is not.",
        "The centred-logit variant (TLC) is not included.",
    ),
)
