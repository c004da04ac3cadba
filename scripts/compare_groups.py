"""What gradient does a forward pass buy if writing is counted too? Independent groups and trees.

    python scripts/compare_groups.py [--seeds 0 1 2] [--groups 1000] [--json OUT.json] [--quick]

On the enumerable network: estimators x samplers x ways of branching, by the cosine with the true
policy gradient that a budget of forward passes reaches; writing, scoring and learning count. About
a minute and a half per seed on one CPU core.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # also runs without an installation

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from estimators import Elbo, Estimator, MeanField, Trajectory, TrajectorySubset
from rl.console import err, out
from rl.rollout_schemes import Tree
from rl.samplers import ConfidenceFirst, LowConfidence, Sampler
from scripts.bench.groups import GroupRow, bench_groups
from scripts.bench.problem import rule_reward
from scripts.bench.tiny import L, TinyDenoiser, train

ESTIMATORS: dict[str, Estimator] = {
    "mean_field (d1)": MeanField(prompt_mask_prob=0.0),
    "elbo, pair (ESPO)": Elbo(coupled=True),
    "trajectory, 2 segments (d2)": Trajectory(segments=2),
    "trajectory": Trajectory(segments=None),
    "trajectory, selection": Trajectory(segments=None, selection=1.0),
    "trajectory_subset, 1 (AGRPO)": TrajectorySubset(m=1),
    "trajectory_subset, 1, baseline": TrajectorySubset(m=1, baseline="one_step"),
}
BUDGETS = (500, 2000, 8000)


def samplers(steps: int) -> dict[str, Sampler]:
    return {
        f"low_confidence, {steps} steps": LowConfidence(steps=steps),
        f"confidence_first, {steps} steps": ConfidenceFirst(steps=steps),
    }


def trees(steps: int) -> dict[str, Tree]:
    """The last part is the last step."""
    parts = (steps - 1, 1)
    return {
        "8 independent": Tree(branching=(8,)),
        "4 x 4 last steps": Tree(branching=(4, 4), parts=parts),
        "8 x 4 last steps": Tree(branching=(8, 4), parts=parts),
        "8 x 8 last steps": Tree(branching=(8, 8), parts=parts),
    }


def table(rows: list[GroupRow], sampler: str) -> Table:
    """Best first by the middle budget; means over seeds, the lowest and highest cosine."""
    head = ("estimator", "rollout", "cosine", "relvar", "cost", "relvar x cost")
    shown = Table(*head, *(f"cos @ {b}" for b in BUDGETS), title=f"rollouts by {sampler}")
    by_pair: dict[tuple[str, str], list[GroupRow]] = {}
    for row in rows:
        if row.sampler == sampler:
            by_pair.setdefault((row.estimator, row.rollout), []).append(row)

    def mean(some: list[GroupRow], value: Callable[[GroupRow], float]) -> float:
        return statistics.mean(map(value, some))

    order = sorted(by_pair, key=lambda k: -mean(by_pair[k], lambda r: r.reachable(BUDGETS[1])))
    for pair in order:
        some = by_pair[pair]
        cosines = sorted(row.cosine for row in some)
        shown.add_row(
            *pair,
            f"{cosines[0]:.2f} to {cosines[-1]:.2f}",
            f"{mean(some, lambda r: r.relvar):.2f}",
            f"{mean(some, lambda r: r.cost):.1f}",
            f"{mean(some, lambda r: r.relvar * r.cost):.0f}",
            *(f"{mean(some, lambda r, b=b: r.reachable(b)):.3f}" for b in BUDGETS),
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--groups", type=int, default=1000, help="per setting and seed: 1000")
    parser.add_argument("--json", type=Path, metavar="OUT.json")
    parser.add_argument("--quick", action="store_true", help="one seed, few groups")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds, groups = (options.seeds[:1], 100) if options.quick else (options.seeds, options.groups)
    rows: list[GroupRow] = []
    work = [(seed, steps) for seed in seeds for steps in (L, L // 2)]
    for seed, steps in track(work, description="comparing", console=err, transient=True):
        rows += bench_groups(
            ESTIMATORS,
            samplers(steps),
            trees(steps),
            TinyDenoiser(train(seed)),
            rule_reward(),
            groups=groups,
            seed=seed,
        )
    for name in dict.fromkeys(row.sampler for row in rows):
        Console(width=max(out.width, 128), highlight=False).print(table(rows, name))
    if options.json:
        records = [{**asdict(row), "cost": row.cost} for row in rows]
        options.json.write_text(json.dumps({"seeds": seeds, "rows": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
