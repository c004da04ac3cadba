"""What the command line says: results on stdout, mistakes and progress on stderr.

Every process of a distributed run gets here; only the first of a machine speaks.
"""

import logging
import os
import sys
from typing import NoReturn

from rich.console import Console, RenderableType
from rich.logging import RichHandler

out = Console(soft_wrap=True, highlight=False)
err = Console(soft_wrap=True, highlight=False, stderr=True)
PAGE = 100  # columns


def speaks() -> bool:
    """Whether this process is the first one on its machine."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def tell(what: RenderableType) -> None:
    """Print a page of text and tables, readable in a pipe too."""
    if speaks():
        width = min(PAGE, out.width) if out.is_terminal else PAGE
        Console(width=width, highlight=False).print(what)


def fail(message: object) -> NoReturn:
    """Print a mistake of the user's, without a traceback, and exit with code 2."""
    if speaks():
        err.print("error:", style="bold red", end=" ")
        err.print(str(message), markup=False)
    sys.exit(2)


def interrupted(then: str = "") -> NoReturn:
    """End after Ctrl-C as a shell expects, without a traceback."""
    if speaks():
        err.print(f"interrupted{then}")
    sys.exit(130)


def log_to_console(level: int = logging.INFO) -> None:
    """Send the packages' log records to stderr (only warnings from the other processes)."""
    handler = RichHandler(console=err, show_path=False, omit_repeated_times=False)
    for package in ("rl", "rewards", "estimators"):
        logger = logging.getLogger(package)
        logger.setLevel(level if speaks() else logging.WARNING)
        logger.handlers = [handler]
        logger.propagate = False
