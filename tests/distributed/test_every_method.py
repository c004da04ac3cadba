"""Every published method on two processes and on one: the same rows, scored the same.

All methods run in one launch, one after the other (`recording.py`).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from rl.models.loading import load, save_native
from rl.models.source import ModelSource
from rl.recipe import load_recipe
from tests.trainer.test_methods import OVERRIDES, REWARD, RUNNABLE

from .launch import on_cpu, run
from .test_strategies import CONFIG

TRAINER = {
    "output_dir": "out", "save_strategy": "no", "max_steps": 2, "optim": "sgd",
    "learning_rate": 0.01, "disable_tqdm": True, "max_completion_length": 8,
    "num_generations": 4, "num_iterations": 2,
}  # fmt: skip
ACROSS, WHOLE = 12, 16  # completions; 6 on each of two processes cut a group of four
CLOSE = {"rtol": 1e-6, "atol": 1e-6}

pytestmark = pytest.mark.slow


def write_recipes(folder: Path) -> None:
    """One of each method; groups that may lie on two processes do."""
    loaded = load(ModelSource(name="bert", config=CONFIG), training=False)
    save_native(loaded.model, loaded.tokenizer, folder / "model")
    (folder / "reward.py").write_text(REWARD)
    pairs = [  # prompts of several lengths
        {"prompt": "1" * (i % 5) + f"{i}=", "chosen": "1234"[: 1 + i % 4], "rejected": "43"}
        for i in range(24)
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (folder / "recipes").mkdir()
    for method in RUNNABLE:
        path = folder / "recipes" / f"{method}.yaml"
        recipe = document(method, folder)
        path.write_text(yaml.safe_dump(recipe))
        bound = load_recipe(str(path))
        if bound.objective.whole_groups or bound.rollout.whole_groups:
            recipe["trainer"]["per_device_train_batch_size"] = WHOLE
            path.write_text(yaml.safe_dump(recipe))


def document(method: str, folder: Path) -> dict[str, Any]:
    recipe = {
        "method": method,
        "model": {"name": "bert", "path": f"{folder}/model"},
        "task": {"name": "preference_pairs", "path": f"{folder}/pairs.jsonl"},
        "trainer": TRAINER | {"per_device_train_batch_size": ACROSS},
    }
    if method != "vrpo":
        recipe |= {"rewards": [f"{folder}/reward.py:letters"], "sampler": {"steps": 4}}
    for override in OVERRIDES.get(method, []):
        key, _, value = override.partition("=")
        section, _, name = key.partition(".")
        recipe.setdefault(section, {})[name] = yaml.safe_load(value)
    return recipe


def recorded(folder: Path, processes: int) -> dict[str, Any]:
    """For each method, the rows of all ranks and the log."""
    out = folder / f"out_{processes}"
    done = run(
        ["--config_file", str(on_cpu("cpu", folder, processes))],
        str(folder / "recipes"), str(out), module="tests.distributed.recording",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    ranks = [torch.load(out / f"rank_{i}.pt") for i in range(processes)]
    found = {method: {"log": got["log"], "rows": {}} for method, got in ranks[0].items()}
    for rank in ranks:
        for method, got in rank.items():
            assert not found[method]["rows"].keys() & got["rows"].keys(), method
            found[method]["rows"] |= got["rows"]
    return found


def test_every_method_on_two_processes_equals_one(tmp_path: Path) -> None:
    write_recipes(tmp_path)
    one, two = (recorded(tmp_path, processes) for processes in (1, 2))
    assert set(one) == set(two) == set(RUNNABLE)
    wrong = [f"{method}: {why}" for method in RUNNABLE for why in differ(one[method], two[method])]
    assert not wrong, "\n".join(wrong)


def differ(one: dict[str, Any], two: dict[str, Any]) -> Iterator[str]:
    """What is not the same, row by row and update by update."""
    if one["rows"].keys() != two["rows"].keys():
        yield f"other rows: {sorted(one['rows'].keys() ^ two['rows'].keys())}"
        return
    for key, a in one["rows"].items():
        b = two["rows"][key]
        if a["text"] != b["text"]:
            yield f"{key}: another text"
        for name in ("plans", "advantages", "old", "ref", "new"):
            yield from unequal(a[name], b[name], f"{key}: another {name}")
        for row in (a, b) if a["old"] else ():
            yield from unequal(row["new"], row["old"], f"{key}: old and current")
    assert len(one["log"]) == len(two["log"]) == TRAINER["max_steps"]
    for step, (a, b) in enumerate(zip(one["log"], two["log"], strict=True)):
        for name, absolute, relative in (("loss", 1e-6, 1e-6), ("grad_norm", 1e-7, 1e-4)):
            if a[name] != pytest.approx(b[name], abs=absolute, rel=relative):
                yield f"update {step}: {name} {a[name]} and {b[name]}"


def unequal(a: Any, b: Any, what: str) -> Iterator[str]:
    try:
        torch.testing.assert_close(a, b, **CLOSE)
    except AssertionError as error:
        yield f"{what}: {error}"
