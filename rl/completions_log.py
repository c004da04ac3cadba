"""What the policy wrote, with rewards and advantages: JSON lines, one file per log and rank."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class CompletionsLog:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: list[str] = []

    def add(
        self,
        rows: Sequence[dict[str, Any]],
        texts: Sequence[str],
        names: Sequence[str],
        rewards: Sequence[Sequence[float]],
        advantages: Sequence[float],
        extra: Mapping[str, Sequence[Any]],
    ) -> None:
        """One entry per completion; `extra` holds the columns a reward passed to `log_extra`."""
        for i, (row, text) in enumerate(zip(rows, texts, strict=True)):
            graded = {
                n: None if math.isnan(v) else v for n, v in zip(names, rewards[i], strict=True)
            }
            entry = {
                "id": row["id"],
                "prompt": row["prompt"],
                "completion": text,
                "rewards": graded,
                "advantage": advantages[i],
                **{
                    column: values[i]
                    for column, values in extra.items()
                    if len(values) == len(rows)
                },
            }
            self._lines.append(json.dumps(entry, ensure_ascii=False, default=str))

    def write(self, step: int, rank: int) -> None:
        """Everything since the last call, to FOLDER/step_STEP_rank_RANK.jsonl."""
        if not self._lines:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"step_{step:06d}_rank_{rank}.jsonl"
        path.write_text("\n".join(self._lines) + "\n", encoding="utf-8")
        self._lines.clear()
