"""Train the tiny task with several methods and seeds; compare what they reach, and at what cost.

python scripts/learning_curves.py [--only NAME ...] [--seeds 0 1 2] [--steps 100] [--out FOLDER]

Each seed has its own supervised model and its own RL seed; all methods start from the same models
and run the same number of optimizer steps. Held-out accuracy is on test prompts that no training
saw. Cost is in forward passes per completion, a backward pass counting as two; equal inputs, which
are run once, are counted once. Writes curves.json and curves.png.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # also runs without an installation

import matplotlib as mpl
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.table import Table

from rl import sft, train
from rl.console import log_to_console, out
from rl.recipe import load_recipe
from rl.report import STYLE, smooth

ROOT = Path(__file__).parents[1]
METHODS = ROOT / "scripts" / "learning_curves.yaml"
COSTS = ("forwards/rollout", "forwards/score", "forwards/update")
# two-sided 95 % quantiles of Student's t for 1 to 9 degrees of freedom
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


def supervised(folder: Path, seed: int) -> Path:
    """The supervised model of a seed; trained once."""
    target = folder / f"sft_seed{seed}"
    if not (target / "model.safetensors").exists():
        overrides = [f"trainer.output_dir={target}", f"trainer.seed={seed}"]
        sft.train(load_recipe(ROOT / "recipes/tiny_cpu_sft.yaml", overrides), overwrite=True)
    return target


def run(folder: Path, name: str, overrides: list[str], seed: int, steps: int) -> dict[str, Any]:
    """One RL run; its learning curve and held-out accuracies. Finished runs are read back."""
    target = folder / f"{name.replace(' ', '_')}_seed{seed}"
    result = target / "curve.json"
    if result.exists():
        return json.loads(result.read_text())
    recipe = load_recipe(
        ROOT / "recipes/tiny_cpu.yaml",
        [
            f"model.path={supervised(folder, seed)}",
            f"trainer.output_dir={target}",
            f"trainer.seed={seed}",
            f"trainer.max_steps={steps}",
            "trainer.log_completions=false",
            "evaluation.steps=[4, 16]",
            "evaluation.every=0",
            *overrides,
        ],
    )
    summary = train.train(recipe, overwrite=True)
    history = json.loads((target / "log_history.json").read_text())
    logged = [entry for entry in history if "reward" in entry]
    found = {
        "reward": [entry["reward"] for entry in logged],
        "cost": sum(sum(entry[name] for name in COSTS) for entry in logged) / len(logged),
        "accuracy": summary["accuracy"],
        "seconds": summary["seconds"]["rl"],
    }
    found["cost"] *= recipe.trainer["per_device_train_batch_size"]  # of a step
    result.write_text(json.dumps(found))
    return found


def mean_and_half_width(values: list[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval by Student's t."""
    if len(values) < 2:
        return values[0], float("nan")
    error = statistics.stdev(values) / len(values) ** 0.5
    return statistics.mean(values), T95[len(values) - 2] * error


def table(results: dict[str, list[dict[str, Any]]]) -> Table:
    head = "method", "forwards", "reward, last tenth", "gain at 4 steps", "gain at 16", "s"
    shown = Table(*head, title="mean and half the 95 % interval over seeds, in points")
    for name, runs in results.items():
        last = [statistics.mean(r["reward"][-max(1, len(r["reward"]) // 10) :]) for r in runs]
        cells = [name, f"{statistics.mean(r['cost'] for r in runs):.2f}"]
        cells.append("{:.1f} ± {:.1f}".format(*mean_and_half_width([100 * x for x in last])))
        for at in ("4", "16"):
            gains = [100 * (r["accuracy"]["after"][at] - r["accuracy"]["before"][at]) for r in runs]
            cells.append("{:+.1f} ± {:.1f}".format(*mean_and_half_width(gains)))
        cells.append(f"{statistics.median(r['seconds'] for r in runs):.0f}")
        shown.add_row(*cells)
    return shown


def picture(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Training reward against optimizer steps, and against forward passes spent."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 2)
        for i, (name, runs) in enumerate(results.items()):
            columns = zip(*(r["reward"] for r in runs), strict=True)
            mean = smooth([statistics.mean(column) for column in columns])
            cost = statistics.mean(r["cost"] for r in runs)
            style = {"color": f"C{i % 10}", "ls": ("-", "--", ":")[i // 10 % 3], "label": name}
            axes[0].plot(range(len(mean)), mean, **style)
            axes[1].plot([k * cost for k in range(len(mean))], mean, **style)
        axes[0].set(title="Training reward", xlabel="optimizer step", ylabel="reward")
        axes[1].set(title="by cost", xlabel="forward passes per completion and step, summed")
        axes[1].legend(fontsize=8)
        figure.savefig(path, dpi=150, facecolor="white")


def main() -> None:
    methods: dict[str, list[str]] = yaml.safe_load(METHODS.read_text())
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=methods, default=[*methods])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("runs/learning_curves"))
    options = parser.parse_args()
    log_to_console()
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[dict[str, Any]]] = {}
    for seed in options.seeds:
        for name in options.only:
            out.print(f"[bold]{name}[/bold], seed {seed}")
            found = run(options.out, name, methods[name], seed, options.steps)
            results.setdefault(name, []).append(found)
    out.print(table(results))
    (options.out / "curves.json").write_text(json.dumps(results, indent=1) + "\n")
    picture(results, options.out / "curves.png")
    out.print(f"{options.out / 'curves.png'}")


if __name__ == "__main__":
    main()
