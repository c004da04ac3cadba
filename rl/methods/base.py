"""What a published method is: the sections of a recipe that it stands for, and where it is from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Section = Mapping[str, Any]

# What `method=NAME` on the command line replaces in a recipe, and what of the sampler it keeps.
DECIDED = ("method", "estimator", "objective", "advantage", "rollout")
FITTED = ("steps", "block_length")


@dataclass(frozen=True, kw_only=True)
class Method:
    """A preset. The sections have what the paper fixes; a recipe's own keys win.

    sampler: the rule and the distribution; steps and blocks depend on the length of a
        completion, and stay the recipe's.
    notes: what a reader of the paper must know of the preset: where paper and released code
        differ and which one we follow, and what we do otherwise.
    """

    title: str
    paper: str  # arXiv id, or this project
    repository: str | None = None  # on GitHub; None: none that we know
    estimator: Section
    objective: Section
    trainer: Section
    sampler: Section | None = None  # None: completions come from a data set
    advantage: Section | None = None
    rollout: Section | None = None
    notes: tuple[str, ...] = ()

    @property
    def published(self) -> bool:
        return self.paper.startswith("arXiv:")

    @property
    def sections(self) -> dict[str, Section]:
        names = ("sampler", "rollout", "estimator", "objective", "advantage", "trainer")
        parts = {name: getattr(self, name) for name in names}
        return {name: part for name, part in parts.items() if part is not None}


def expand(preset: Mapping[str, Section], sections: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's sections on top of the preset's; another `name` replaces a section whole."""
    expanded = dict(sections)
    for key, defaults in preset.items():
        given = sections.get(key) or {}
        own = {"name": given} if isinstance(given, str) else given
        if isinstance(own, Mapping) and own.get("name") in (None, defaults.get("name")):
            expanded[key] = {**defaults, **own}
    return expanded


def undecided(document: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without what a method decides, for `method=NAME` on the command line."""
    rest = {key: value for key, value in document.items() if key not in DECIDED}
    sampler = rest.pop("sampler", None)
    if isinstance(sampler, Mapping):
        rest["sampler"] = {key: sampler[key] for key in FITTED if key in sampler}
    return rest
