"""Train a masked diffusion model with GRPO.

    python -m rl.train RECIPE [key.sub=value ...]                                one process
    accelerate launch --config_file recipes/accelerate/zero2.yaml -m rl.train RECIPE
    python -m rl.train --list estimators

Exit code 2: something in the recipe or on the command line is wrong; the message says what.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from rl._layout import check_layout
from rl.console import fail, log_to_console, out
from rl.recipe import LISTS, Recipe, known_names, load_recipe


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    log_to_console()
    try:
        check_layout()
        if arguments.list:
            out.print("\n".join(known_names(arguments.list)))
            return 0
        if not arguments.recipe:
            raise ValueError("which recipe? For example: python -m rl.train recipes/tiny_cpu.yaml")
        recipe = load_recipe(arguments.recipe, arguments.overrides)
        train(recipe, resume=arguments.resume, overwrite=arguments.overwrite)
    except ValueError as error:
        if arguments.debug:
            raise
        fail(error)
    return 0


def train(recipe: Recipe, *, resume: bool = False, overwrite: bool = False) -> dict[str, Any]:
    """Run a recipe; returns what it writes to OUTPUT_DIR/summary.json."""
    from rl.recipe_checks import check_recipe

    check_recipe(recipe, resume=resume, overwrite=overwrite)
    # Imported late: a mistake in a recipe is told before these take their seconds.
    from rl.preparation import prepare
    from rl.session import Session

    session = Session(recipe, prepare(recipe))
    started = time.perf_counter()
    before = session.evaluate("before")
    evaluated = time.perf_counter()
    session.trainer.train(resume_from_checkpoint=resume)
    trained = time.perf_counter()
    session.save()
    after = session.evaluate("after")
    seconds = {
        "rl": trained - evaluated,
        "eval": evaluated - started + time.perf_counter() - trained,
    }
    return session.finish(before, after, seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rl.train", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("recipe", nargs="?", help="a YAML file, see recipes/")
    parser.add_argument("overrides", nargs="*", metavar="key.sub=value", help="change the recipe")
    parser.add_argument("--list", metavar="KIND", help=f"print known names: {', '.join(LISTS)}")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    parser.add_argument("--debug", action="store_true", help="show the traceback of a mistake")
    return parser


if __name__ == "__main__":
    sys.exit(main())
