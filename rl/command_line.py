"""What `python -m rl.train` and `python -m rl.sft` have in common."""

import argparse
import errno
from collections.abc import Callable, Sequence
from typing import Any

from safetensors import SafetensorError

from rl._layout import check_layout
from rl.console import fail, interrupted, log_to_console, out
from rl.recipe import LISTS, Recipe, known_names, load_recipe

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def run(
    train: Callable[..., Any],
    argv: Sequence[str] | None,
    *,
    prog: str,
    doc: str | None,
    kind: str,
    explain: Callable[[Recipe], None] | None = None,
) -> int:
    """Bind the recipe that the command line names and call `train(recipe, resume, overwrite)`.

    A ValueError is a mistake of the user's: its message, and exit code 2.
    """
    options = _parser(prog, doc, explains=explain is not None).parse_intermixed_args(argv)
    log_to_console()
    try:
        check_layout()
        if options.list is not None:
            out.print("\n".join(known_names(options.list)))
            return 0
        if not options.recipe:
            raise ValueError(f"which recipe? For example: python -m {prog} recipes/tiny_cpu.yaml")
        recipe = load_recipe(options.recipe, options.overrides)
        _check_kind(recipe, kind)
        if explain and options.explain:
            explain(recipe)
            return 0
        train(recipe, resume=options.resume, overwrite=options.overwrite)
    except KeyboardInterrupt:
        if options.debug:
            raise
        interrupted("; what was saved is intact, and --resume goes on from the last checkpoint")
    except (ValueError, ImportError, FloatingPointError) as error:  # the last: it diverged
        if options.debug:
            raise
        fail(error)
    except (OSError, SafetensorError) as error:  # the latter has no errno
        if options.debug or getattr(error, "errno", errno.ENOSPC) not in NO_ROOM:
            raise
        fail(f"{error}; what was saved before is intact, --resume goes on from it")
    return 0


def _check_kind(recipe: Recipe, kind: str) -> None:
    if recipe.kind != kind:
        command = {"grpo": "rl.train", "sft": "rl.sft"}[recipe.kind]
        raise ValueError(
            f"{recipe.path} is a recipe of kind {recipe.kind}: python -m {command} {recipe.path}"
        )


def _parser(prog: str, doc: str | None, *, explains: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description=doc, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("recipe", nargs="?", help="a YAML file, see recipes/")
    parser.add_argument("overrides", nargs="*", metavar="key.sub=value", help="change the recipe")
    kinds = f"print known names: {', '.join(LISTS)}"
    parser.add_argument("--list", metavar="KIND", nargs="?", const="", help=kinds)
    if explains:
        text = "print what the recipe does, what it estimates and what it costs, and end"
        parser.add_argument("--explain", action="store_true", help=text)
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    earlier.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    parser.add_argument("--debug", action="store_true", help="show the traceback of a mistake")
    return parser
