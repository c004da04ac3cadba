"""Read config.json of a checkpoint, in the family's own layout or in the native one, as data.

No code from a checkpoint is run, so the model type that a hub config names need not exist here.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import PretrainedConfig

from .spec import FAMILY_FIELD, ModelSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """fields: config.json as it is. hub_layout: the family's own names, not the native ones.

    hub_fields: config.json in the family's own words, so that the weights can be written back so;
        None where the family has no layout of its own, or where nobody recorded it.
    """

    path: str
    revision: str | None
    fields: dict[str, Any]
    config: PretrainedConfig
    hub_layout: bool
    hub_fields: dict[str, Any] | None


HUB_FIELDS = "hub_fields"  # in a native config.json


def read_fields(path: str, revision: str | None = None) -> dict[str, Any]:
    """config.json as it is."""
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
    return fields


def read_checkpoint(spec: ModelSpec, path: str, revision: str | None = None) -> Checkpoint:
    fields = read_fields(path, revision)
    if not spec.reads(fields):
        raise ValueError(
            f"{path}: config.json has {identity(fields)}; the {spec.name} family reads "
            f"{_read_by(spec)}. Set model.name to the family of this checkpoint."
        )
    hub_layout = spec.is_hub_layout(fields)
    if hub_layout:
        config = native_config(spec, fields, where=f"{path}: config.json")
    else:
        config = settle(spec, spec.native_config.from_dict(fields))
    return Checkpoint(
        path=path,
        revision=revision,
        fields=fields,
        config=config,
        hub_layout=hub_layout,
        hub_fields=fields if hub_layout else fields.get(HUB_FIELDS),
    )


def identity(fields: Mapping[str, Any]) -> str:
    """What a config.json says it is."""
    if FAMILY_FIELD in fields:
        return f"{FAMILY_FIELD} {fields[FAMILY_FIELD]!r}"
    classes = ", ".join(fields.get("architectures") or [])
    return f"model_type {fields.get('model_type')!r}" + (f" ({classes})" if classes else "")


def _read_by(spec: ModelSpec) -> str:
    hub = f"{spec.hub_type!r}{f' ({spec.hub_class})' if spec.hub_class else ''}"
    return f"{hub} or {spec.native_type!r}" if spec.hub_type else repr(spec.native_type)


def native_config(spec: ModelSpec, fields: Mapping[str, Any], *, where: str) -> PretrainedConfig:
    """The native config for fields in the family's own words."""
    for name, value in spec.requires.items():
        if fields.get(name) not in (None, value):
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
    return settle(spec, config)


def settle(spec: ModelSpec, config: PretrainedConfig) -> PretrainedConfig:
    """Remove what a native class does and a denoiser must not."""
    config.use_cache = False
    if spec.causal and getattr(config, "sliding_window", None) is not None:
        config.sliding_window = None  # unused by these models, but native caches would obey it
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
