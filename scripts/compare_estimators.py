"""How good is the gradient of each estimator, with each sampler, and what does it cost?

    python scripts/compare_estimators.py [--json OUT.json] [--plot OUT.png] [--seed 0] [--quick]
    python scripts/compare_estimators.py --estimator my_file.py:MyEstimator --estimator elbo
    python scripts/compare_estimators.py --estimator '{name: elbo, samples: 4}'
    python scripts/compare_estimators.py --model PATH --task gsm8k --length 128
    python scripts/compare_estimators.py --check

The default is a network so small that everything can be enumerated: bias, noise, and the cosine
with the true policy gradient; then a Markov chain of 64 and of 256 tokens, whose predictions are
exact for every mask. About 3 minutes on one CPU core. --model takes a checkpoint: the spread over
masks and the gap to the log-probs that the sampler recorded.

--estimator and --sampler replace the default lists; each can be given several times. --check
compares the cosines of three seeds with those of an independent enumeration.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # also runs without an installation

import torch
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from estimators import ESTIMATORS, Estimator
from rl.backend import quiet_transformers
from rl.console import err, fail, interrupted, out
from rl.samplers import SAMPLERS, LowConfidence, Sampler
from rl.tasks import TASKS, Task
from scripts.bench import settings
from scripts.bench.arguments import build, build_all
from scripts.bench.chain import bench_chain
from scripts.bench.checkpoint import Workload, bench_checkpoint, load_checkpoint
from scripts.bench.measure import Contender, bench
from scripts.bench.picture import write_picture
from scripts.bench.reference import COSINES, TOLERANCE, differences
from scripts.bench.report import (
    as_record,
    checkpoint_table,
    gradient_table,
    noise_table,
    write_json,
)

Contenders = Mapping[str, Estimator | Contender]


def main() -> None:
    options = _arguments()
    torch.set_num_threads(1)
    try:
        if options.check:
            _check()
        elif options.model == "tiny":
            _tiny(options)
        else:
            _checkpoint(options)
    except KeyboardInterrupt:
        interrupted()
    except (ValueError, ImportError) as error:
        fail(error)


def _arguments() -> argparse.Namespace:
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny", metavar="tiny|PATH")
    parser.add_argument("--estimator", action="append", default=[], metavar="SPEC")
    parser.add_argument("--sampler", action="append", default=[], metavar="SPEC")
    parser.add_argument("--json", type=Path, metavar="OUT.json")
    parser.add_argument("--plot", type=Path, metavar="OUT.png")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few estimators, few draws")
    parser.add_argument("--check", action="store_true", help="against reference.json; exit code 1")
    real = parser.add_argument_group("with --model PATH")
    real.add_argument("--family", help="of the checkpoint, if config.json does not tell")
    real.add_argument("--task", default="countdown", metavar="SPEC")
    for name in ("prompts", "generations", "length", "plans", "batch_size"):
        default = getattr(Workload(), name)
        flag = f"--{name.replace('_', '-')}"
        real.add_argument(flag, type=int, default=default, metavar="N", help=f"{default}")
    return parser.parse_args()


def _tiny(options: argparse.Namespace) -> None:
    """The enumerable network, then the Markov chain."""
    quick = options.quick
    estimators, samplers, noisy = _contenders(options), _samplers(options), settings.NOISE_COMPARED
    chained = [name for name in estimators if options.estimator or name in noisy]
    lengths = (64,) if quick else (64, 256)
    total = len(estimators) * len(samplers) + len(chained) * len(lengths)
    with _progress() as progress:
        bar = progress.add_task("comparing", total=total)
        rows = bench(
            estimators,
            samplers,
            options.seed,
            rollouts=1500 if quick else 6000,
            on_row=lambda _: progress.advance(bar),
        )
        chain = bench_chain(
            {name: _estimator(estimators[name]) for name in chained},
            lengths,
            options.seed,
            on_row=lambda _: progress.advance(bar),
        )
    for sampler in samplers:
        _show(gradient_table(rows, sampler))
    for length in lengths:
        _show(noise_table(chain, length))
    if options.json:
        write_json(
            options.json,
            model="tiny",
            seed=options.seed,
            settings={name: repr(entry) for name, entry in {**estimators, **samplers}.items()},
            rows=[as_record(row) for row in rows],
            chain=chain,
        )
    if options.plot:
        families = {name: settings.family(_estimator(e)) for name, e in estimators.items()}
        title = f"What gradient does a forward pass buy? Tiny network, seed {options.seed}"
        write_picture(options.plot, rows, families, title)


def _checkpoint(options: argparse.Namespace) -> None:
    """Spread and gap on a real model."""
    work = Workload(
        prompts=options.prompts,
        generations=options.generations,
        length=options.length,
        plans=options.plans,
        batch_size=options.batch_size,
        seed=options.seed,
    )
    if options.plot:
        raise ValueError("--plot draws cosines with the true gradient, which only tiny has")
    estimators = settings.CHECKPOINT_COMPARED
    if options.estimator:
        estimators = build_all("estimator", options.estimator, ESTIMATORS, Estimator)
    samplers: Mapping[str, Sampler] = {"low_confidence": LowConfidence(steps=work.length // 2)}
    if options.sampler:
        samplers = build_all("sampler", options.sampler, SAMPLERS, Sampler)
    for sampler in samplers.values():
        sampler.validate(work.length)
    task = build("task", options.task, TASKS, Task)
    task.validate()
    quiet_transformers()
    loaded = load_checkpoint(options.model, options.family)
    rows = []
    with _progress() as progress:
        bar = progress.add_task("comparing", total=len(estimators) * len(samplers))
        for name, sampler in samplers.items():
            rows += bench_checkpoint(
                loaded,
                name,
                sampler,
                task,
                estimators,
                work,
                on_row=lambda _: progress.advance(bar),
            )
    for name in samplers:
        mine = [row for row in rows if row.sampler == name]
        title = f"{options.model}, {options.task}: rollouts by {name}, {work.length} tokens"
        _show(checkpoint_table(mine, title))
    if options.json:
        things = {**estimators, **samplers}
        shown = {name: repr(thing) for name, thing in things.items()}
        write_json(options.json, model=options.model, work=work, settings=shown, rows=rows)


def _check() -> None:
    """Exit with 1 if a cosine is too far from the reference."""
    worst = 0.0
    for seed in COSINES:
        found = differences(int(seed))
        where = max(found, key=lambda pair: abs(found[pair]))
        out.print(f"seed {seed}: {len(found)} cosines, largest difference", end=" ")
        out.print(f"{found[where]:+.4f} ({where[0]}; rollouts by {where[1]})")
        worst = max(worst, abs(found[where]))
    if worst > TOLERANCE:
        sys.exit(1)


def _contenders(options: argparse.Namespace) -> Contenders:
    if options.estimator:
        return build_all("estimator", options.estimator, ESTIMATORS, Estimator)
    compared = settings.ESTIMATORS_COMPARED
    return (
        {name: compared[name] for name in settings.QUICK_ESTIMATORS} if options.quick else compared
    )


def _samplers(options: argparse.Namespace) -> Mapping[str, Sampler]:
    if options.sampler:
        return build_all("sampler", options.sampler, SAMPLERS, Sampler)
    compared = settings.SAMPLERS_COMPARED
    return {name: compared[name] for name in settings.QUICK_SAMPLERS} if options.quick else compared


def _show(table: RenderableType) -> None:
    """In full: a narrow window wraps lines, and a file has no width."""
    Console(width=max(out.width, 128), highlight=False).print(table)


def _estimator(entry: Estimator | Contender) -> Estimator:
    return entry.estimator if isinstance(entry, Contender) else entry


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


if __name__ == "__main__":
    main()
