"""The rollouts still in use, beside a checkpoint that was saved in the middle of a window.

With num_iterations > 1 (or several optimizer steps per rollout) a checkpoint can fall between two
updates on the same rollouts. Those rollouts came from a policy that no longer exists, so they are
saved; a resumed run then goes on exactly where the interrupted one stopped.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from estimators import Estimate, MaskPlan, Sequences
from rl.experience import Experience


def window_path(checkpoint: str | Path, rank: int) -> Path:
    return Path(checkpoint) / f"rollouts_rank_{rank}.safetensors"


def save_window(window: list[Experience], path: Path) -> None:
    tensors: dict[str, Tensor] = {}
    for part, experience in enumerate(window):
        groups = {"sequences": (experience.sequences,), "plans": experience.plans}
        groups |= {"old": experience.old, "ref": experience.ref}
        for name, items in groups.items():
            for i, item in enumerate(items):
                for key, value in vars(item).items():
                    if value is not None:
                        tensors[f"{part}/{name}/{i}/{key}"] = value
        tensors[f"{part}/scored"] = experience.scored
        tensors[f"{part}/advantages"] = experience.advantages
    path.parent.mkdir(parents=True, exist_ok=True)  # rank 0 of another machine made its own
    save_file({key: value.cpu().contiguous().clone() for key, value in tensors.items()}, path)


def load_window(path: Path, device: torch.device) -> list[Experience]:
    if not path.exists():
        raise ValueError(
            f"{path} is missing: the checkpoint was saved in the middle of a rollout, which each "
            "process keeps in a file of its own. Resume with as many processes as before and all "
            "of their files, or from a checkpoint at the end of a rollout"
        )
    tensors = {key: value.to(device) for key, value in load_file(path).items()}
    parts = 1 + max(int(key.split("/")[0]) for key in tensors)
    return [_experience(tensors, part) for part in range(parts)]


def _experience(tensors: dict[str, Tensor], part: int) -> Experience:
    def items(name: str) -> list[dict[str, Tensor]]:
        found: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith(f"{part}/{name}/"):
                _, _, i, field = key.split("/")
                found.setdefault(int(i), {})[field] = value
        return [found[i] for i in sorted(found)]

    return Experience(
        sequences=Sequences(**items("sequences")[0]),
        plans=tuple(MaskPlan(**x) for x in items("plans")),
        old=tuple(Estimate(**x) for x in items("old")),
        ref=tuple(Estimate(**x) for x in items("ref")),
        scored=tensors[f"{part}/scored"],
        advantages=tensors[f"{part}/advantages"],
    )
