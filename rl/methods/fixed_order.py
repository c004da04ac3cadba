"""Methods that score tokens one by one, in reading order or in the recorded one."""

from .base import Method

JUST_GRPO = Method(
    title="JustGRPO, train in reading order",
    paper="arXiv:2601.15165",
    repository="LeapLabTHU/JustGRPO",
    sampler={"name": "left_to_right", "temperature": 1.0},
    estimator={"name": "left_to_right"},
    objective={"name": "clipped", "level": "token", "epsilon": 0.2, "aggregation": "constant"},
    advantage={"baseline": "mean", "scale": "group"},
    trainer={"num_generations": 16, "num_iterations": 1, "learning_rate": 5e-6},
    notes=(
        "The estimate is exact if one token is written per step: set sampler.steps to "
        "trainer.max_completion_length. One forward and backward pass per token.",
        "All tokens of the canvas are scored, also those after EOS, as in the code, which divides "
        "by the completions with an advantage; here by all completions.",
        "The faster variant scores the quarter of tokens with the highest entropy: "
        "estimator.top_entropy: 0.25.",
    ),
)

D2_ANY_ORDER = Method(
    title="d2-AnyOrder",
    paper="arXiv:2509.21474",
    repository="kuleshov-group/d2",
    sampler={"name": "low_confidence", "temperature": 0.9},
    estimator={"name": "any_order"},
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
        "One forward gives the whole trajectory, for networks that are causal in any order "
        "(Eso-LM); on others it would be wrong, and is refused.",
        "The released code writes masks into the ids it then takes as targets, and so scores the "
        "mask token; the paper's method is meant here.",
    ),
)
