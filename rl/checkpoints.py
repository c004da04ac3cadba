"""Which checkpoint to go on from."""

import json
from pathlib import Path

PREFIX = "checkpoint"  # transformers' own


def checkpoint_folder(folder: str | Path, step: int) -> Path:
    return Path(folder) / f"{PREFIX}-{step}"


def last_whole_checkpoint(folder: str | Path) -> str | None:
    """The newest checkpoint that was written to its end; None if there is none.

    trainer_state.json is written last, so a run stopped in the middle of a save leaves none, or
    half of one.
    """
    steps = {
        int(path.name.rpartition("-")[2]): path
        for path in Path(folder).glob(f"{PREFIX}-*")
        if path.name.rpartition("-")[2].isdecimal()
    }
    return next((str(steps[n]) for n in sorted(steps, reverse=True) if _is_whole(steps[n])), None)


def _is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
