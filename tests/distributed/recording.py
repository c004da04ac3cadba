"""Train a folder of recipes one after the other, and keep what each rollout was scored as.

    accelerate launch ... -m tests.distributed.recording FOLDER OUT

FOLDER/NAME.yaml is bound with an equal share of its per_device_train_batch_size for each process.
OUT/rank_N.pt has, for each NAME, the rows of the first rollout by their keys, and the log.
"""

import gc
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState

from estimators import Estimate, MaskPlan
from rl.experience import Experience
from rl.preparation import prepare
from rl.recipe import load_recipe
from rl.recipe_checks import check_recipe
from rl.rollout_schemes import Rollouts
from rl.session import Session

SIZE = "trainer.per_device_train_batch_size"
PIECE = 5  # rows that are scored again at once


class Recording:
    """A trainer's roller that keeps its first rollout."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.roller, self.scheme = trainer, trainer.roller, trainer.roller.scheme
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.made: Rollouts | None = None

    def __call__(self, rows: Any, model: Any, state: Any) -> Experience:
        experience = replace(self.roller, scheme=self.write)(rows, model, state)
        if not self.rows:
            assert self.made is not None
            self.rows = dict(zip(self.made.keys, self.known(experience, model), strict=True))
            assert len(self.rows) == len(experience)
        return experience

    def write(self, window: Any) -> Rollouts:
        self.made = self.scheme(window)
        return self.made

    def known(self, experience: Experience, model: Any) -> list[dict[str, Any]]:
        count, scorer = len(experience), self.trainer.scorer
        again: list[list[Estimate]] = []  # of each row, one per plan
        for at in range(0, count, PIECE):
            piece = experience.rows(slice(at, at + PIECE))
            found = scorer.estimate_all(model, piece.sequences, piece.plans)
            again += [
                [estimate.rows(slice(i, i + 1)) for estimate in found] for i in range(len(piece))
            ]
        return [_row(experience.rows(slice(i, i + 1)), again[i]) for i in range(count)]


def _row(one: Experience, new: list[Estimate]) -> dict[str, Any]:
    """Of one row, without the padding that other rows ask for."""
    seqs = one.sequences
    prompt = seqs.prompt_mask[0]
    maps = {
        name: getattr(seqs, name).tolist()
        for name in ("completion_mask", "step_map", "order_map", "block_map")
        if getattr(seqs, name) is not None
    }
    return {
        "text": {
            "prompt": seqs.prompt_ids[0, prompt].tolist(),
            "completion": seqs.completion_ids.tolist(),
            **maps,
        },
        "plans": [_views(plan, prompt) for plan in one.plans],
        "advantages": one.advantages,
        "old": [_terms(*pair) for pair in zip(one.old, one.plans, strict=False)],
        "ref": [_terms(*pair) for pair in zip(one.ref, one.plans, strict=False)],
        "new": [_terms(*pair) for pair in zip(new, one.plans, strict=True)],
    }


def _views(plan: MaskPlan, prompt: torch.Tensor) -> list[torch.Tensor]:
    used = plan.weight[0].ne(0).any(-1)
    parts = (plan.completion, plan.weight, plan.importance, plan.choice)
    return [plan.prompt[0, used][:, prompt], *(x[0, used] for x in parts if x is not None)]


def _terms(estimate: Estimate, plan: MaskPlan) -> list[torch.Tensor]:
    used = plan.weight[0].ne(0).any(-1)
    choice = estimate.choice_logp
    kept = (
        estimate.token_logp,
        estimate.upper_logp,
        None if choice is None else choice[:, used],
    )
    return [x.detach() for x in kept if x is not None]


def record(path: Path, out: Path) -> dict[str, Any]:
    each = load_recipe(str(path)).trainer["per_device_train_batch_size"]
    share, left = divmod(each, int(os.environ.get("WORLD_SIZE", "1")))
    assert not left
    folder = f"trainer.output_dir={out / path.stem}"
    recipe = load_recipe(str(path), [f"{SIZE}={share}", folder])
    check_recipe(recipe)
    prepared = prepare(recipe)
    for model in filter(None, (prepared.loaded.model, prepared.reference)):
        model.double()  # no rounding to tell from a difference
    trainer: Any = Session(recipe, prepared).trainer
    trainer.roller = recording = Recording(trainer)
    trainer.train()
    log = [entry for entry in trainer.state.log_history if "grad_norm" in entry]
    return {"rows": recording.rows, "log": log}


def main(folder: Path, out: Path) -> None:
    gc.freeze()  # the Trainer collects garbage, which is slow among all that was imported
    found = {path.stem: record(path, out) for path in sorted(folder.glob("*.yaml"))}
    out.mkdir(exist_ok=True)
    torch.save(found, out / f"rank_{PartialState().process_index}.pt")
    PartialState().destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
