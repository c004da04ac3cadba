"""What a run was: the recipe with every default filled in, versions and commit, beside its results.

The file is a recipe itself: `python -m rl.train OUTPUT_DIR/resolved_recipe.yaml` runs it again.
"""

import dataclasses
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rl.recipe import Recipe
from rl.recipe_yaml import dump
from rl.resolve import find_file

RESOLVED = "resolved_recipe.yaml"
_BOUND = (
    "model", "task", "sampler", "rollout", "estimator", "objective", "advantage", "evaluation",
    "sft",
)  # fmt: skip
_DISTRIBUTIONS = ("unmask-rl", "torch", "transformers", "trl", "peft", "accelerate")


def resolved(recipe: Recipe) -> dict[str, Any]:
    """The recipe's sections; those bound to dataclasses with all of their fields."""
    sections: dict[str, Any] = {"kind": recipe.kind}
    for key, given in recipe.raw.items():
        sections[key] = _plain(given)
    for key in _BOUND:
        part = getattr(recipe, key)
        # no `evaluation:` means none is made, so its defaults may not be written
        asked = key in recipe.raw or key != "evaluation"
        if asked and dataclasses.is_dataclass(part):
            name = _name(sections.get(key), recipe.path.parent)
            sections[key] = name | {k: v for k, v in _fields(part).items() if k not in name}
    if "rewards" in sections:
        folder = recipe.path.parent
        sections["rewards"] = [
            (entry if isinstance(entry, dict) else {}) | _name(entry, folder)
            for entry in sections["rewards"]
        ]
    sections["trainer"] = _plain(recipe.trainer)
    return sections


def provenance() -> dict[str, Any]:
    """Versions, and the commit when this is a git checkout (not an installed wheel)."""
    versions = {name: _version(name) for name in _DISTRIBUTIONS}
    return {"python": platform.python_version(), **versions, "git_commit": _git_commit()}


def write_resolved(recipe: Recipe, output_dir: str | Path, *, overwrite: bool = False) -> Path:
    """Write OUTPUT_DIR/resolved_recipe.yaml, in one step so that no reader sees half of it.

    overwrite: first remove the checkpoints and completions of the run that was there, which
        `--resume` or a reader would take for this one's.
    """
    path = Path(output_dir) / RESOLVED
    if overwrite:
        for earlier in (*path.parent.glob("checkpoint-*"), path.parent / "completions"):
            shutil.rmtree(earlier, ignore_errors=not earlier.exists())
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**resolved(recipe), "provenance": provenance()}
    part = path.with_suffix(".part")
    header = f"# {recipe.path} as it was run; this file is a recipe itself\n"
    part.write_text(header + dump(document), encoding="utf-8")
    os.replace(part, path)
    return path


def _name(section: Any, folder: Path) -> dict[str, str]:
    """The section's `name`, if it has one; that of a plug-in file as it is found from anywhere."""
    name = section if isinstance(section, str) else (section or {}).get("name")
    if name is None:
        return {}
    source, _, attribute = name.rpartition(":")
    return {"name": f"{find_file(source, folder)}:{attribute}" if source.endswith(".py") else name}


def _fields(part: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(part, f.name)) for f in dataclasses.fields(part) if f.init}


def _plain(value: Any) -> Any:
    """Values that YAML can hold."""
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """The commit of these sources, with "+changes" if they differ from it."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None  # a wheel inside somebody else's repository
    commit = git("rev-parse", "HEAD")
    return f"{commit}+changes" if commit and git("status", "--porcelain", "--", ".") else commit
