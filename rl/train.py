"""Train a masked diffusion model with GRPO.

    python -m rl.train RECIPE [key.sub=value ...]                                one process
    accelerate launch --config_file recipes/accelerate/zero2.yaml -m rl.train RECIPE
    python -m rl.train --explain RECIPE [key.sub=value ...]         what it does and costs
    python -m rl.train --list estimators

Exit code 2: something in the recipe or on the command line is wrong; the message says what.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

from rl.command_line import run
from rl.recipe import Recipe


def main(argv: Sequence[str] | None = None) -> int:
    return run(train, argv, prog="rl.train", doc=__doc__, kind="grpo", explain=explain)


def explain(recipe: Recipe) -> None:
    """Print what a recipe does, what it estimates and what it costs; no model is loaded."""
    from rl.console import tell
    from rl.explain import explanation

    tell(explanation(recipe))


def train(recipe: Recipe, *, resume: bool = False, overwrite: bool = False) -> dict[str, Any]:
    """Run a recipe; returns what it writes to OUTPUT_DIR/summary.json."""
    from rl.recipe_checks import check_recipe

    check_recipe(recipe, resume=resume, overwrite=overwrite)
    # Imported late: a mistake in a recipe is told before these take their seconds.
    from rl.evaluation_run import check_evaluation
    from rl.preparation import evaluates, prepare
    from rl.session import Session

    if evaluates(recipe):
        check_evaluation(recipe)
    session = Session(recipe, prepare(recipe, overwrite=overwrite))
    started = time.perf_counter()
    before = session.evaluate("before")
    evaluated = time.perf_counter()
    trainer = session.trainer
    trainer.train(resume_from_checkpoint=resume or trainer.args.resume_from_checkpoint)
    trained = time.perf_counter()
    session.save()
    after = session.evaluate("after")
    seconds = {
        "rl": trained - evaluated,
        "eval": evaluated - started + time.perf_counter() - trained,
    }
    return session.finish(before, after, seconds)


if __name__ == "__main__":
    sys.exit(main())
