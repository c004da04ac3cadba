"""Accuracy on held-out prompts, with the sampler, prompt and grader of training.

Greedy decoding is temperature 0; sampled decoding writes one completion per prompt at the
configured temperature. A completion depends on the weights, the prompt's id and the seed, not on
batch size, row order or number of processes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelerate import PartialState
from accelerate.utils import gather_object
from rich.progress import track

from estimators import stable_seed
from rl.console import err
from rl.generation import prompt_ids
from rl.graded import Generation, Measured, Row, grade, measured
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.rollouts import write_completions
from rl.samplers import Sampler

Results = dict[str, dict[int, Measured]]  # "greedy" or "sampled" -> denoising steps


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The `evaluation:` section of a recipe.

    prompts: how many test prompts; None is all.
    steps: denoising steps of greedy decoding; empty is the sampler's own number.
    sampled_steps: denoising steps of decoding at `temperature`; empty is none.
    batch_size: completions denoised at a time, per process.
    every: training steps between evaluations while training; 0 is none.
    monitor_prompts: test prompts of those evaluations.
    seed: of sampled decoding; the prompts do not depend on it.
    """

    prompts: int | None = 1000
    steps: tuple[int, ...] = ()
    sampled_steps: tuple[int, ...] = ()
    temperature: float = 1.0
    batch_size: int = 128
    every: int = 0
    monitor_prompts: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("prompts", "batch_size", "monitor_prompts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                null = ", or null for all" if name == "prompts" else ""
                raise ValueError(f"{name} is {value}; use at least 1{null}")
        if self.every < 0:
            raise ValueError(
                f"every is {self.every}; use a number of training steps, or 0 for none"
            )
        for name in ("steps", "sampled_steps"):
            values = getattr(self, name)
            if any(value < 1 for value in values) or len(set(values)) < len(values):
                raise ValueError(f"{name} is {list(values)}; list different numbers from 1 up")
        if not 0 < self.temperature < math.inf:
            raise ValueError(
                f"temperature is {self.temperature}; sampled decoding needs a positive number "
                "(greedy decoding is in `steps`)"
            )

    def samplers(self, sampler: Sampler) -> dict[str, dict[int, Sampler]]:
        """`sampler` at every configured number of steps and temperature."""
        greedy = replace(sampler, temperature=0.0)
        sampled = replace(sampler, temperature=self.temperature)
        return {
            "greedy": {n: replace(greedy, steps=n) for n in self.steps or (sampler.steps,)},
            "sampled": {n: replace(sampled, steps=n) for n in self.sampled_steps},
        }

    def validate(self, sampler: Sampler, length: int) -> None:
        """Raise if a number of steps does not fit completions of `length` tokens."""
        for mode, samplers in self.samplers(sampler).items():
            for variant in samplers.values():
                try:
                    variant.validate(length)
                except ValueError as error:
                    name = "steps" if mode == "greedy" else "sampled_steps"
                    raise ValueError(f"evaluation.{name}: {error}") from error

    def monitor(self, sampler: Sampler) -> "EvaluationConfig":
        """The short evaluation while training: greedy, at the steps of training."""
        return replace(self, prompts=self.monitor_prompts, steps=(sampler.steps,), sampled_steps=())


def generate(
    denoiser: ModelDenoiser,
    loaded: LoadedModel,
    rows: Sequence[Row],
    sampler: Sampler,
    length: int,
    *,
    seed: int,
    batch_size: int,
    repeat: int = 0,
    rank: int = 0,
    world_size: int = 1,
    progress: bool = False,
) -> list[Generation]:
    """Complete `rows[rank::world_size]`, in that order."""
    mine = list(rows[rank::world_size])
    share = -(-len(rows) // world_size)
    # Ranks run equal numbers of forwards, since some strategies gather parameters inside them.
    work = sorted(mine + [rows[0]] * (share - len(mine)), key=lambda row: len(str(row["prompt"])))
    device = next(denoiser.model.parameters()).device
    written: dict[str, Generation] = {}
    starts = range(0, len(work), batch_size)
    title = f"{sampler.steps} steps, T={sampler.temperature:g}"
    for at in track(
        starts, title, console=err, transient=True, disable=not (progress and err.is_terminal)
    ):
        batch = work[at : at + batch_size]
        out = write_completions(
            denoiser,
            sampler,
            loaded,
            batch,
            length=length,
            seeds=[stable_seed(seed, row["id"], repeat) for row in batch],
            device=device,
        )
        counts = out.sequences.completion_mask.sum(-1).tolist()
        for row, text, tokens, nfe in zip(batch, out.texts, counts, out.nfe.tolist(), strict=True):
            written[row["id"]] = Generation(
                id=row["id"],
                repeat=repeat,
                completion=text,
                tokens=tokens,
                nfe=nfe,
                steps=sampler.steps,
                temperature=sampler.temperature,
            )
    return [written[row["id"]] for row in mine]


def evaluate(
    denoiser: ModelDenoiser,
    loaded: LoadedModel,
    rows: Sequence[Row],
    sampler: Sampler,
    length: int,
    *,
    grader: Callable[..., Any],
    config: EvaluationConfig,
    progress: bool = False,
    on_result: Callable[[str, int, list[Generation]], None] | None = None,
) -> Results:
    """Accuracy for every setting of `config`; all processes must call it and all get the result.

    rows: the prompts to use, see `held_out_rows`; `config.prompts` is not read here.
    on_result: called with ("greedy" or "sampled", steps, all generations in the order of `rows`).
    """
    _check_room(loaded, rows, length)
    state = PartialState()
    results: Results = {}
    for mode, samplers in config.samplers(sampler).items():
        results[mode] = {}
        for steps, variant in samplers.items():
            own = generate(
                denoiser,
                loaded,
                rows,
                variant,
                length,
                seed=config.seed,
                batch_size=config.batch_size,
                rank=state.process_index,
                world_size=state.num_processes,
                progress=progress and state.is_main_process,
            )
            found = {x.id: x for x in gather_object(grade(own, rows, grader))}
            everyone = [found[row["id"]] for row in rows]
            results[mode][steps] = measured(everyone)
            if on_result is not None:
                on_result(mode, steps, everyone)
    return results


def _check_room(loaded: LoadedModel, rows: Sequence[Row], length: int) -> None:
    longest = max(len(prompt_ids(loaded.tokenizer, row["prompt"])) for row in rows)
    if longest + length > loaded.max_length:
        raise ValueError(
            f"the longest prompt to evaluate has {longest} tokens and a completion {length}, but "
            f"the model has {loaded.max_length} positions; make completions shorter "
            "(trainer.max_completion_length, or sft.pad_to)"
        )


def held_out_rows(task: Any, prompts: int | None) -> list[Row]:
    """The first `prompts` test rows of a `rl.tasks.Task`; None is all."""
    rows = task.rows("test", limit=prompts)
    ids = {row["id"] for row in rows}
    if len(ids) < len(rows) or not rows:
        raise ValueError(
            f"task {task.name}: {len(rows)} test rows have {len(ids)} different ids; an evaluation "
            "needs at least one row, and an `id` of its own for each"
        )
    return rows
