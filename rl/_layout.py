"""Fail early when another distribution has claimed one of our import names.

`rl`, `rewards` and `estimators` are short names and pip overwrites files without a word: whichever
was installed last wins, and uninstalling it deletes ours.
"""

from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "unmask-rl"
NAMES = ("rl", "rewards", "estimators")


def check_layout() -> None:
    """Raise ImportError unless our three packages are ours alone and lie side by side."""
    owners = packages_distributions()
    for name in NAMES:
        rivals = sorted(set(owners.get(name, ())) - {DISTRIBUTION})
        if rivals:
            raise ImportError(
                f"`{name}` is also installed by {', '.join(rivals)}, and the two overwrite each "
                f"other's files. Use a fresh environment, or: pip uninstall {' '.join(rivals)} "
                f"{DISTRIBUTION}; pip install {DISTRIBUTION}"
            )
    homes = {name: _home(name) for name in NAMES}
    if len(set(homes.values())) > 1:
        found = "; ".join(f"{name} from {home or 'nowhere'}" for name, home in homes.items())
        raise ImportError(
            f"the packages of {DISTRIBUTION} come from different folders: {found}. A folder with "
            "the same name on sys.path (the current folder comes first) hides ours: rename it, or "
            "start from another folder."
        )


def _home(name: str) -> Path | None:
    spec = find_spec(name)
    return Path(spec.origin).parents[1] if spec and spec.origin else None
