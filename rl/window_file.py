"""The rollouts still in use, beside a checkpoint that was saved in the middle of a window.

With num_iterations > 1 (or several optimizer steps per rollout) a checkpoint can fall between two
updates on the same rollouts. Those rollouts came from a policy that no longer exists, so they are
saved; a resumed run then goes on exactly where the interrupted one stopped.

A tensor's key is its path: `1/old/0/token_logp` is `window[1].old[0].token_logp`.
"""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from estimators import Estimate, MaskPlan, Sequences
from rl.experience import Experience

_PER_PASS = {"plans": MaskPlan, "old": Estimate, "ref": Estimate}  # tuples, one per pass
_Kind = TypeVar("_Kind", Sequences, MaskPlan, Estimate)


def window_path(checkpoint: str | Path, rank: int) -> Path:
    return Path(checkpoint) / f"rollouts_rank_{rank}.safetensors"


def save_window(window: list[Experience], path: Path) -> None:
    tensors = {
        f"{part}/{key}": tensor.cpu().contiguous().clone()
        for part, experience in enumerate(window)
        for key, tensor in _tensors(experience)
    }
    path.parent.mkdir(parents=True, exist_ok=True)  # rank 0 of another machine made its own
    save_file(tensors, path)


def load_window(path: Path, device: torch.device) -> list[Experience]:
    if not path.exists():
        raise ValueError(
            f"{path} is missing: the checkpoint was saved in the middle of a rollout, which each "
            "process keeps in a file of its own. Resume with as many processes as before and all "
            "of their files, or from a checkpoint at the end of a rollout"
        )
    tensors = {key: value.to(device) for key, value in load_file(path).items()}
    parts = 1 + max(int(key.split("/")[0]) for key in tensors)
    return [_experience(_below(tensors, str(part))) for part in range(parts)]


def _tensors(value: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor in a dataclass and in its tuples of dataclasses; None is left out."""
    entries = (
        enumerate(value)
        if isinstance(value, tuple)
        else ((field.name, getattr(value, field.name)) for field in fields(value))
    )
    for name, entry in entries:
        if isinstance(entry, Tensor):
            yield str(name), entry
        elif entry is not None:
            yield from ((f"{name}/{key}", tensor) for key, tensor in _tensors(entry))


def _experience(tensors: dict[str, Tensor]) -> Experience:
    lists: dict[str, Any] = {
        name: tuple(_per_pass(kind, _below(tensors, name))) for name, kind in _PER_PASS.items()
    }
    alone: dict[str, Any] = {key: x for key, x in tensors.items() if "/" not in key}
    return Experience(sequences=Sequences(**_below(tensors, "sequences")), **lists, **alone)


def _per_pass(kind: type[_Kind], tensors: dict[str, Tensor]) -> Iterator[_Kind]:
    count = len({key.split("/")[0] for key in tensors})
    for i in range(count):
        yield kind(**_below(tensors, str(i)))


def _below(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """What is inside `name/`, without that prefix."""
    start = f"{name}/"
    return {k.removeprefix(start): x for k, x in tensors.items() if k.startswith(start)}
