"""Methods that score tokens from the fully masked completion, alone or beside partial masks."""

from .base import Method

DIFFU_GRPO = Method(
    title="diffu-GRPO, of d1",
    paper="arXiv:2504.12216",
    repository="dllm-reasoning/d1",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={"name": "mean_field", "prompt_mask_prob": 0.15},
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
        "prompt_mask_prob is 0.15, as in the paper and the released run; the code's default is "
        "0.3. One prompt mask is shared by a group (same mean, one forward per prompt); "
        "share_prompt_mask: row gives a mask per completion, as released.",
        "The released loss is divided by the tokens of a micro-batch, and it counts passes in "
        "micro-batches; here both belong to the whole optimizer step.",
        "The released run moves the reference to the current policy every 64 steps; here it stays.",
    ),
)

WD1 = Method(
    title="wd1, weighted likelihood",
    paper="arXiv:2507.08838",
    repository="xiaohangt/wd1",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={"name": "mean_field", "prompt_mask_prob": 0.15},
    objective={"name": "policy_gradient", "aggregation": "sequence_sum"},
    advantage={"baseline": "mean", "scale": "none", "weighting": "softmax"},
    trainer={"num_generations": 6, "num_iterations": 12, "learning_rate": 3e-6},
    notes=(
        "The weights are softmax(A) - softmax(-A) in each group, as in the paper; the code takes "
        "the softmax over the local micro-batch, which is the same only if that is one group.",
        "The sum over a group is divided by its size here, a constant in the learning rate.",
    ),
)

COUPLED_GRPO = Method(
    title="coupled-GRPO, of DiffuCoder",
    paper="arXiv:2506.20639",
    repository="apple/ml-diffucoder",
    sampler={"name": "low_confidence", "temperature": 1.0},
    estimator={"name": "coupled"},
    objective={
        "name": "clipped",
        "level": "token",
        "epsilon": 0.5,
        "beta": 0.01,
        "kl": "k3",
        "aggregation": "token_mean",
    },
    advantage={"baseline": "leave_one_out", "scale": "none"},
    trainer={"num_generations": 10, "num_iterations": 2, "learning_rate": 1e-6},
    notes=(
        "The weights of the three views add up to 1.5, as published: a ratio is about the power "
        "1.5 of what its name says.",
        "The masking ratio is each completion's own; the code draws one for a batch.",
        "In the code, reference and current policy see different masks when num_iterations is 1; "
        "here they always share them.",
    ),
)

IGPO = Method(
    title="IGPO, inpainting-guided exploration",
    paper="arXiv:2509.10396",
    repository="facebookresearch/igpo",
    sampler={"name": "low_confidence", "temperature": 1.2},
    rollout={"name": "inpaint"},
    estimator={"name": "mean_field", "prompt_mask_prob": 0.0},
    objective={
        "name": "clipped",
        "level": "sequence",
        "epsilon": 0.15,
        "beta": 0.0,
        "aggregation": "sequence_mean",
    },
    advantage={"baseline": "mean", "scale": "none"},
    trainer={"num_generations": 8, "num_iterations": 4, "learning_rate": 5e-7},
    notes=(
        "epsilon 0.15 and no KL term are the paper's; the released script has 0.2 and beta 0.01.",
        "The released sequence ratio is a mean over all positions, padding included; here over "
        "the scored tokens.",
    ),
)
