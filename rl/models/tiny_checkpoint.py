"""Checkpoint folders in a family's hub layout, with random weights: for tests and dry runs."""

from pathlib import Path

from . import MODELS
from .checkpoint import native_config
from .fresh import new_fields, new_model
from .hub_layout import save_hub
from .source import family
from .weights import save_native


def make_tiny_checkpoint(name: str, out: str | Path, seed: int = 0) -> Path:
    """Write a checkpoint of family `name` to `out`, a folder that is new or empty."""
    spec, out = family(name, MODELS), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} exists and is not an empty folder; name a new one.")
    tokenizer = spec.tiny_tokenizer()
    fields = new_fields(spec, tokenizer, {})
    model = new_model(spec, native_config(spec, fields, where="tiny_config"), seed=seed)
    if spec.hub_type is None:
        setattr(model.config, spec.config_mask_field, fields[spec.config_mask_field])
        save_native(model, tokenizer, out)
        return out
    save_hub(spec, model, tokenizer, fields, out)
    return out
