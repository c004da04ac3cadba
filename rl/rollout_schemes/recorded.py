"""Completions and their rewards come from the data set; nothing is written or graded.

    A_i = +1 where the reward is 1 (chosen, good),  -1 where it is 0 (rejected, bad)

The tokens are those of supervised training: the text, then EOS up to the end of the canvas. For
the objectives `preference` (DPO on pairs) and `kto` (single completions with a label).

Paper     VRPO of LLaDA 1.5, arXiv:2505.19223; ELBO-KTO, arXiv:2510.23658
"""

import logging
from dataclasses import dataclass
from typing import Any, Literal

import torch

from rl.canvas import check_possible, on_canvas, text_ids
from rl.models.loading import LoadedModel
from rl.rollouts import completions

from .base import Rollouts, RolloutScheme, Row, Rows, Window

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Recorded(RolloutScheme):
    """
    too_long: a completion of more than trainer.max_completion_length tokens: stop, cut it off, or
        leave its row out.
    """

    paper = "VRPO, arXiv:2505.19223; ELBO-KTO, arXiv:2510.23658"
    changes = "completions and rewards come from the data set: pairs, or labelled texts"
    writes = False
    grades = False
    compares = False
    brought_by = "task preference_pairs or preference_labels, as in recipes/llada_8b_vrpo.yaml"

    too_long: Literal["error", "truncate", "drop"] = "error"

    def __call__(self, window: Window) -> Rollouts:
        examples = [
            row["recorded"][key[-1]] for row, key in zip(window.rows, window.keys, strict=True)
        ]
        ids = text_ids(window.loaded, [x["completion"] for x in examples])
        rows = [
            {**row, "prompt": x["prompt"]} for row, x in zip(window.rows, examples, strict=True)
        ]
        rewards = torch.tensor([x["reward"] for x in examples])
        return Rollouts(
            rows=rows,
            keys=window.keys,
            completions=completions(
                window.loaded,
                rows,
                on_canvas(window.loaded, ids, window.length).to(window.device),
            ),
            advantages=2 * rewards - 1,
            rewards=rewards,
        )

    def prompts(self, row: Row) -> list[Any]:
        return [x["prompt"] for x in row["recorded"]]

    def check_rows(self, rows: Rows, *, num_generations: int) -> None:
        for row in rows:
            recorded = row.get("recorded")
            if not isinstance(recorded, list):
                raise ValueError(
                    f"row {row.get('id')!r} has no recorded completions (its columns: "
                    f"{', '.join(sorted(row))}); use {self.brought_by}"
                )
            if len(recorded) != num_generations:
                raise ValueError(
                    f"row {row['id']!r} has {len(recorded)} recorded completions and "
                    f"trainer.num_generations is {num_generations}; set it to {len(recorded)}"
                )

    def fitting(self, rows: Rows, loaded: LoadedModel, *, length: int) -> list[Row]:
        kept: list[Row] = []
        long: list[tuple[str, int]] = []
        for row in rows:
            ids = text_ids(loaded, [x["completion"] for x in row["recorded"]])
            longest = max(map(len, ids))
            if longest > length:
                long.append((row["id"], longest))
            if longest <= length or self.too_long == "truncate":
                check_possible(loaded, [row["id"]] * len(ids), on_canvas(loaded, ids, length))
                kept.append(row)
        if long and self.too_long == "error":
            raise ValueError(
                f"row {long[0][0]!r}: a completion has {long[0][1]} tokens, more than "
                f"trainer.max_completion_length {length} ({len(long)} of {len(rows)} rows have "
                "one); make that larger, or set rollout.too_long to truncate or drop"
            )
        if long:
            fate = "are cut off" if self.too_long == "truncate" else "are left out"
            logger.info("%d of %d rows, with a completion of more than %d tokens, %s",
                        len(long), len(rows), length, fate)  # fmt: skip
        return kept
