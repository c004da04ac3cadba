"""Estimators on a real checkpoint, where nothing is exact but everything can be repeated.

A sampler writes completions of a task's prompts and records the log-prob of every token in its
step. Every estimator then scores them under several plans:

    std          over plans, of the estimate of log p(o): mean over completions, in nats
    gap          mean of the estimate minus the recorded log-probs, over the tokens that it scores
    correlation  of the two over completions
    forwards     that the model ran per completion and plan; a group's are scored in one call

The recorded sum is the log-probability of the rollout's tokens, not of its choice of positions:
`trajectory` with every step and without selection has gap 0, up to rounding.

Shapes: B completions, L tokens, D plans.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from estimators import Estimator, RowRandom, Sequences, stable_seed
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel, family_of, load
from rl.models.source import ModelSource
from rl.rollouts import write_completions
from rl.samplers import Sampler
from rl.tasks import Task


@dataclass(frozen=True, kw_only=True)
class CheckpointRow:
    """One estimator on one checkpoint; see the top of the file."""

    estimator: str
    sampler: str
    std_nats: float
    gap_nats: float
    correlation: float
    forwards: float
    rollout_forwards: float
    seconds: float  # per completion and plan


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How much is measured. batch_size: sequences in one forward pass."""

    prompts: int = 4
    generations: int = 4
    length: int = 64
    plans: int = 8
    batch_size: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("prompts", "generations", "length", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; use at least 1")
        if self.plans < 2:
            raise ValueError(f"plans is {self.plans}; a spread needs at least 2")


def load_checkpoint(path: str, family: str | None) -> LoadedModel:
    """On a GPU in bfloat16 if there is one, otherwise on the CPU in float32."""
    gpu = torch.cuda.is_available()
    source = ModelSource(
        name=family or family_of(path), path=path, dtype="bfloat16" if gpu else "float32"
    )
    loaded = load(source, training=False)
    loaded.model.to("cuda" if gpu else "cpu")  # pyright: ignore[reportArgumentType]
    loaded.model.eval()
    return loaded


def bench_checkpoint(
    loaded: LoadedModel,
    sampler_name: str,
    sampler: Sampler,
    task: Task,
    estimators: Mapping[str, Estimator],
    work: Workload,
    *,
    on_row: Callable[[CheckpointRow], None] = lambda row: None,
) -> list[CheckpointRow]:
    """All estimators on the same completions."""
    denoiser = ModelDenoiser.of(loaded, rows_per_forward=work.batch_size)
    prompts = task.rows("test", work.prompts, work.seed)
    rows = [row for row in prompts for _ in range(work.generations)]
    written = write_completions(
        denoiser,
        sampler,
        loaded,
        rows,
        length=work.length,
        seeds=[stable_seed(work.seed, "rollout", b) for b in range(len(rows))],
        device=loaded.model.device,
        batch_size=work.batch_size,
    )
    measured: list[CheckpointRow] = []
    for name, estimator in estimators.items():
        denoiser.forwards, started = 0, time.perf_counter()
        value_DB = _values(estimator, sampler, denoiser, written.sequences, work)
        measured.append(
            CheckpointRow(
                estimator=name,
                sampler=sampler_name,
                **_statistics(value_DB, _recorded(estimator, written.sequences)),
                forwards=denoiser.forwards / value_DB.numel(),
                rollout_forwards=float(written.nfe.double().mean()),
                seconds=(time.perf_counter() - started) / value_DB.numel(),
            )
        )
        on_row(measured[-1])
    return measured


def _values(
    estimator: Estimator,
    sampler: Sampler,
    denoiser: ModelDenoiser,
    seqs: Sequences,
    work: Workload,
) -> Float[Tensor, "D B"]:
    """The estimate of log p(o) of every completion under every plan."""
    G, every = work.generations, torch.arange(len(seqs.completion_ids))
    values: list[Tensor] = []
    with denoiser.evaluating():
        for number in range(work.plans):
            seeds = [stable_seed(work.seed, number, b) for b in every.tolist()]
            groups = [stable_seed(work.seed, number, "group", b // G) for b in every.tolist()]
            plan = estimator.plan(seqs, RowRandom(seeds, groups))
            parts = [
                estimator(
                    denoiser, seqs.rows(rows), plan.rows(rows), sampler.decoding(work.length)
                ).sequence_logp
                for rows in every.split(G)
            ]
            values.append(torch.cat(parts).double().cpu())
    return torch.stack(values)


def _recorded(estimator: Estimator, seqs: Sequences) -> Float[Tensor, " B"]:
    return (seqs.recorded("rollout_logp") * estimator.scored(seqs).cpu()).sum(-1).double()


def _statistics(value: Float[Tensor, "D B"], recorded: Float[Tensor, " B"]) -> dict[str, float]:
    mean = value.mean(0)
    spread = bool(mean.std() > 0) and bool(recorded.std() > 0)
    return {
        "std_nats": float(value.std(0).mean()),
        "gap_nats": float((mean - recorded).mean()),
        "correlation": float(torch.corrcoef(torch.stack([mean, recorded]))[0, 1])
        if spread
        else 0.0,
    }
