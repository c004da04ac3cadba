"""SFT, then RL, then the picture: the two commands of the README, in one process.

python scripts/quickstart.py [--out runs/quickstart] [--seed 0]
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # also runs without an installation

from rl import sft, train
from rl.console import log_to_console, out
from rl.memory import peak_memory_mb
from rl.recipe import load_recipe

RECIPES = Path(__file__).parents[1] / "recipes"


def main(folder: Path, seed: int = 0) -> dict[str, Any]:
    """Write FOLDER/{sft,rl,report.png,summary.json}; an earlier run there is replaced."""
    started = time.perf_counter()
    supervised = load_recipe(
        RECIPES / "tiny_cpu_sft.yaml",
        [f"trainer.output_dir={folder / 'sft'}", f"trainer.seed={seed}"],
    )
    reinforced = load_recipe(
        RECIPES / "tiny_cpu.yaml",
        [
            f"model.path={folder / 'sft'}",
            f"trainer.output_dir={folder / 'rl'}",
            f"trainer.seed={seed}",
        ],
    )
    out.print("[bold]1/2  supervised fine-tuning[/bold]  4x4 sudokus and their solutions")
    first = sft.train(supervised, overwrite=True)
    out.print("[bold]2/2  reinforcement learning[/bold]  in a quarter of the denoising steps")
    second = train.train(reinforced, overwrite=True)

    train_prompts = {
        row["prompt"] for r in (supervised, reinforced) for row in r.task.rows("train")
    }
    held_out = reinforced.task.rows("test", limit=second["heldout"])
    summary = {
        "seconds": {
            "sft": first["seconds"]["sft"],
            "rl": second["seconds"]["rl"],
            "eval": second["seconds"]["eval"],
            "total": time.perf_counter() - started,
        },
        "peak_memory_mb": peak_memory_mb(),
        "heldout": second["heldout"],
        "overlap": sum(row["prompt"] in train_prompts for row in held_out),
        "trained_steps": second["trained_steps"],
        "accuracy": second["accuracy"],
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    shutil.copy(folder / "rl" / "report.png", folder / "report.png")
    _tell(folder, summary)
    return summary


def _tell(folder: Path, summary: dict[str, Any]) -> None:
    before, after = summary["accuracy"]["before"], summary["accuracy"]["after"]
    out.print(f"\nheld-out accuracy on {summary['heldout']} prompts that training never saw")
    for steps, value in before.items():
        mark = "  <- trained at" if int(steps) == summary["trained_steps"] else ""
        change = 100 * (after[steps] - value)
        numbers = f"{value:6.1%} -> {after[steps]:6.1%}  ({change:+.1f})"
        out.print(f"  {steps:>2} denoising steps   {numbers}{mark}")
    out.print(f"\n{summary['seconds']['total']:.0f} s, {summary['peak_memory_mb']:.0f} MB")
    out.print(f"the picture:            {folder / 'report.png'}")
    out.print(f"what the policy wrote:  {folder / 'rl' / 'completions'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="SFT, then RL, then the picture.")
    parser.add_argument("--out", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    log_to_console()
    main(arguments.out, arguments.seed)
