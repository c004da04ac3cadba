"""Checkpoints that cannot be used: what is wrong with them, before a run has written anything."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from .conftest import told


def weights(change):
    def apply(folder: Path) -> None:
        file = folder / "model.safetensors"
        tensors = load_file(file)
        change(tensors)
        save_file(tensors, file, metadata={"format": "pt"})

    return apply


def remove(*names: str):
    def apply(folder: Path) -> None:
        for path in folder.iterdir():
            if not names or path.name in names:
                path.unlink()

    return apply


def adapter(**fields):
    def apply(folder: Path) -> None:
        remove()(folder)
        (folder / "adapter_config.json").write_text(json.dumps(fields))

    return apply


def cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:5000])


def no_mask_token(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        file = folder / name
        file.write_text(file.read_text().replace("<mask>", "<musk>"))


LAST = "lm_head.layer_norm.bias"
BROKEN = {
    "truncated": (cut, "tiny: a safetensors file is damaged ("),
    "a key missing": (
        weights(lambda tensors: tensors.pop(LAST)),
        f"1 missing from the checkpoint:\n    {LAST}",
    ),
    "another shape": (
        weights(lambda tensors: tensors.update({LAST: torch.zeros(3)})),
        f"{LAST}: (3,) in the checkpoint, (64,) in the model",
    ),
    "diverged": (
        weights(lambda tensors: tensors[LAST].fill_(float("nan"))),
        "tiny has weights that are NaN or infinite, as a run that diverged leaves them",
    ),
    "an empty folder": (remove(), "model.path: 'tiny' has no config.json. Give the folder of a"),
    "no weights": (remove("model.safetensors"), "tiny: no safetensors weights can be read ("),
    "no tokenizer": (remove("tokenizer.json"), "tiny: no tokenizer can be read there; its files"),
    "no mask token": (
        no_mask_token,
        "has no mask token of the roberta_prelayernorm family: tried <mask>.",
    ),
    "an adapter for nothing": (
        adapter(peft_type="LORA"),
        "tiny: adapter_config.json does not say which model the adapter is for. Give the",
    ),
    "an adapter whose base is gone": (
        adapter(peft_type="LORA", base_model_name_or_path="/nope"),
        "tiny: the adapter was trained on '/nope', which is not there any more.",
    ),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_checkpoint(damage: str, here: Path, capsys) -> None:
    break_it, sentence = BROKEN[damage]
    break_it(here / "tiny")
    assert sentence in told(capsys, "train", "R.yaml")
    assert not (here / "out/resolved_recipe.yaml").exists()
