"""Checkpoint folders under test: change them, load them, run them."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from rl.models.loading import LoadedModel, load
from rl.models.source import ModelSource


def edit_config(folder: Path, **fields: object) -> None:
    """Set fields of config.json; None removes one."""
    path = folder / "config.json"
    changed = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({k: v for k, v in changed.items() if v is not None}))


def edit_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def from_folder(folder: Path, name: str = "llada", *, training: bool = False) -> LoadedModel:
    return load(ModelSource(name=name, path=str(folder)), training=training)


def logits(loaded: LoadedModel, ids: Tensor | None = None) -> Tensor:
    if ids is None:
        ids = torch.arange(7, 31).view(2, 12)
    N, S = ids.shape
    attend = torch.ones(N, 1, S, S, dtype=torch.bool)
    with torch.no_grad():
        places = torch.arange(S)[None]
        return loaded.model(input_ids=ids, attention_mask=attend, position_ids=places).logits
