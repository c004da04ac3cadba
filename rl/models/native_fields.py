"""A hub config in nearly native words -> the fields of a native config class."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from transformers import PretrainedConfig

SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings",
)  # fmt: skip
ROPE = ("rope_theta", "rope_scaling", "partial_rotary_factor")  # parts of native rope_parameters
OURS = ("architectures", "dtype", "transformers_version", "use_cache")  # not copied


def native_fields(
    config_class: type[PretrainedConfig], hub: Mapping[str, Any], *needed: str
) -> dict[str, Any]:
    """What the native class knows by the same name; KeyError where a size is not given at all.

    A default would be that of another model.
    """
    rope = () if "rope_parameters" in hub else ("rope_theta",)
    for name in (*SIZES, *rope, *needed):
        hub[name]
    own = {field.name for field in dataclasses.fields(config_class)}
    known = (own | set(config_class.attribute_map) | set(ROPE)) - set(OURS)
    return {name: value for name, value in hub.items() if name in known}
