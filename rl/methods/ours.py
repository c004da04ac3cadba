"""What this project adds to the published methods."""

from .base import Method

LAST_STEP_TREE = Method(
    title="trajectories of a tree that branches at the last step",
    paper="this project",
    sampler={"name": "low_confidence", "temperature": 1.0},
    rollout={"name": "tree", "branching": [8, 4], "parts": "last_step"},
    estimator={"name": "trajectory", "segments": None},
    objective={"name": "clipped", "level": "token", "epsilon": 0.2, "aggregation": "constant"},
    advantage={"baseline": "leave_one_out", "scale": "group"},
    trainer={"num_generations": 32, "num_iterations": 1},
    notes=(
        "8 canvases per prompt are written up to the last step, and each is finished 4 times. "
        "Equal inputs are run once, so that the 32 completions cost as many forward passes as 8, "
        "and 32 gradings; when learning, if a micro-batch holds whole prompts "
        "(trainer.per_device_train_batch_size a multiple of 32).",
        "The best gradient for its cost of all that we measured (estimators/README.md). It helps "
        "where the last step decides something: few steps with many tokens each. With a token or "
        "two a step, branch earlier (rollout.parts) or leave the rollout independent.",
        "With low_confidence rollouts estimator.selection: 1.0 makes the gradient exact, at up to "
        "twice the noise; with confidence_first it is exact as it is.",
    ),
)
