"""Read config.json of a checkpoint, in the family's own layout or in the native one, as data.

No code from a checkpoint is run, so the model type that a hub config names need not exist here.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import transformers
from transformers import PretrainedConfig

from .spec import ModelSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """fields: config.json as it is. hub_layout: the family's own names, not the native ones."""

    path: str
    revision: str | None
    fields: dict[str, Any]
    config: PretrainedConfig
    hub_layout: bool


def read_checkpoint(spec: ModelSpec, path: str, revision: str | None = None) -> Checkpoint:
    try:
        fields, _ = PretrainedConfig.get_config_dict(path, revision=revision)
    except OSError as error:
        raise ValueError(
            f"model.path: no config.json can be read at {path!r} ({first_line(error)}). Give a "
            "folder that has one, or the id of a repository on the Hugging Face hub."
        ) from error
    if not fields:  # transformers' answer for a folder without one
        raise ValueError(
            f"model.path: {path!r} has no config.json. Give the folder of a checkpoint, or the id "
            "of a repository on the Hugging Face hub."
        )
    kind = fields.get("model_type")
    hub_layout = spec.hub_type is not None and kind == spec.hub_type
    if not hub_layout and kind != spec.native_type:
        allowed = " or ".join(repr(t) for t in (spec.hub_type, spec.native_type) if t)
        raise ValueError(
            f"{path}: config.json has model_type {kind!r}; the {spec.name} family reads {allowed}. "
            "Set model.name to the family of this checkpoint."
        )
    if hub_layout:
        config = native_config(spec, fields, where=f"{path}: config.json")
    else:
        config = settle(getattr(transformers, spec.native).config_class.from_dict(fields))
    return Checkpoint(
        path=path, revision=revision, fields=fields, config=config, hub_layout=hub_layout
    )


def native_config(spec: ModelSpec, fields: Mapping[str, Any], *, where: str) -> PretrainedConfig:
    """The native config for fields in the family's own words."""
    for name, value in spec.requires.items():
        if fields.get(name, value) != value:
            raise ValueError(
                f"{where} has {name}: {fields[name]!r}; {spec.native} can only be "
                f"{value!r} there. This variant of {spec.name} is not supported."
            )
    try:
        config = spec.config_from(dict(fields))
    except KeyError as error:
        raise ValueError(
            f"{where} has no field {error}, which the {spec.name} family needs (it has: "
            f"{', '.join(sorted(fields))}). Is it a checkpoint of another family?"
        ) from error
    return settle(config)


def settle(config: PretrainedConfig) -> PretrainedConfig:
    """Remove what a native class does and a denoiser must not."""
    config.use_cache = False
    # As an embedding's padding_idx it would cut the gradient of a token that is also eos.
    config.pad_token_id = None
    for name, value in config.to_dict().items():
        if "dropout" in name and value:
            logger.info(
                "%s: %s -> 0.0; with dropout, equal weights give unequal ratios", name, value
            )
            setattr(config, name, 0.0)
    return config


def first_line(error: OSError) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else repr(error)
