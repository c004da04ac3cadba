"""Published methods as presets: `method: diffu_grpo` stands for the sections below.

What a recipe writes in the same sections wins, key by key. To change a method, write its sections
out; to add one, add a row.
"""

from collections.abc import Mapping
from typing import Any

METHODS: dict[str, dict[str, dict[str, Any]]] = {
    # d1, arXiv:2504.12216
    "diffu_grpo": {
        "estimator": {"name": "mean_field", "prompt_mask_prob": 0.15},
        "objective": {
            "name": "clipped",
            "level": "token",
            "epsilon": 0.5,
            "beta": 0.04,
            "kl": "k3",
            "aggregation": "token_mean",
        },
        "advantage": {"baseline": "mean", "scale": "none"},
    },
}


def expand(preset: Mapping[str, Mapping[str, Any]], sections: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's sections on top of the preset's; another `name` replaces a section whole."""
    expanded = dict(sections)
    for key, defaults in preset.items():
        given = sections.get(key) or {}
        own = {"name": given} if isinstance(given, str) else given
        if isinstance(own, Mapping) and own.get("name") in (None, defaults.get("name")):
            expanded[key] = {**defaults, **own}
    return expanded
