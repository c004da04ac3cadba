"""The rollouts in use come back from their file exactly, whichever fields they have."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Estimate, MaskPlan, Sequences
from rl.experience import Experience
from rl.window_file import load_window, save_window

B, Q, L, M = 2, 3, 4, 2
CPU = torch.device("cpu")


def tensor(name: str, annotation: Any, seed: int) -> Tensor:
    """Numbers of the right type and shape for a field."""
    text = str(annotation)
    axes = next(a for a in ("B M Q", "B M L", "B M", "B Q", "B L", "B E") if a in text)
    shape = [{"B": B, "M": M, "Q": Q, "L": L}[axis] for axis in axes.split()]
    g = torch.Generator().manual_seed(seed + sum(map(ord, name)))
    if "Bool" in text:
        return torch.ones(shape, dtype=torch.bool) if name == "completion" else (
            torch.rand(shape, generator=g) < 0.5
        )  # fmt: skip
    if "Int" in text:
        return torch.randint(-1, 9, shape, generator=g)
    if name == "weight":  # a token may have one weight only, as there is `importance`
        weight = torch.zeros(shape, dtype=torch.float64)
        weight[:, 0] = torch.rand(shape[::2], generator=g, dtype=torch.float64)
        return weight
    return torch.rand(shape, generator=g)


def filled(kind: type[Any], seed: int, *, optional: bool) -> Any:
    given = {}
    for field in fields(kind):
        if optional or "None" not in str(field.type):
            given[field.name] = tensor(field.name, field.type, seed)
    return kind(**given)


def experience(seed: int, *, optional: bool, per_token: bool = False) -> Experience:
    return Experience(
        sequences=filled(Sequences, seed, optional=optional),
        plans=tuple(filled(MaskPlan, seed + k, optional=optional) for k in (0, 1)),
        old=tuple(filled(Estimate, seed + k, optional=optional) for k in (2, 3)),
        ref=(filled(Estimate, seed + 4, optional=optional),) if optional else (),
        scored=torch.rand(B, L) < 0.5,
        advantages=torch.randn(B, L) if per_token else torch.randn(B),
        groups=torch.tensor([seed, 2**55 + 1]),
    )


def everything(value: Any) -> Any:
    """Nested lists of what is in it, with types and numbers."""
    if isinstance(value, Tensor):
        return (value.dtype, value.tolist())
    if isinstance(value, tuple):
        return [everything(item) for item in value]
    if value is None:
        return None
    return {field.name: everything(getattr(value, field.name)) for field in fields(value)}


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("per_token", [True, False])
def test_everything_comes_back(tmp_path: Path, optional: bool, per_token: bool) -> None:
    window = [experience(s, optional=optional, per_token=per_token) for s in range(12)]
    save_window(window, tmp_path / "folder" / "rollouts.safetensors")
    loaded = load_window(tmp_path / "folder" / "rollouts.safetensors", CPU)
    assert [everything(part) for part in loaded] == [everything(part) for part in window]


def test_optional_fields_are_really_filled() -> None:
    full, bare = experience(0, optional=True), experience(0, optional=False)
    for name in ("sequences", "plans", "old"):
        one, other = getattr(full, name), getattr(bare, name)
        one, other = (x[0] if isinstance(x, tuple) else x for x in (one, other))
        assert all(value is not None for value in vars(one).values())
        assert any(value is None for value in vars(other).values())
