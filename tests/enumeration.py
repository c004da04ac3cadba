"""Decoders on a tiny model by brute force: every proposal, every choice, every trajectory.

Nothing here is shared with the samplers or with `estimators/choice.py`: a step goes through all
V^E joint proposals for its E masked positions and asks what a rule makes of each.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from estimators import MaskPlan, Sequences
from rl.samplers import Rollout, Sampler
from tests.tiny_models import MASK, TinyDenoiser, V, sequences

Action = tuple[tuple[int, int], ...]  # (position, token), in the order of choice
Path = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # ids, step map, order map

PROMPT = (1, 2)


@dataclass(frozen=True, kw_only=True)
class Enumerated:
    """Every trajectory of positive probability."""

    seqs: Sequences
    chance: Tensor  # differentiable

    def as_dict(self) -> dict[Path, Tensor]:
        return dict(zip(paths_of(self.seqs), self.chance, strict=True))


def paths_of(written: Sequences | Rollout) -> list[Path]:
    rows = zip(written.completion_ids, written.step_map, written.order_map, strict=True)
    return [tuple(tuple(x.tolist()) for x in row) for row in rows]


def enumerate_paths(model: TinyDenoiser, sampler: Sampler, length: int) -> Enumerated:
    width = sampler.block_length or length
    per_block = sampler.steps * width // length
    empty: Path = ((MASK,) * length, (-1,) * length, (-1,) * length)
    paths: dict[Path, Tensor] = {empty: torch.ones((), dtype=torch.float64)}
    known: dict[tuple, dict[Action, Tensor]] = {}
    while any(MASK in ids for ids, *_ in paths):
        longer: dict[Path, Tensor] = {}
        for (ids, step_map, order_map), chance in paths.items():
            if MASK not in ids:
                longer[ids, step_map, order_map] = chance
                continue
            first = ids.index(MASK) // width * width
            here = [j for j in range(first, first + width) if ids[j] == MASK]
            used = len({s for s in step_map[first : first + width] if s >= 0})
            due = math.ceil(len(here) / (per_block - used))
            if (ids, due) not in known:
                known[ids, due] = _actions(model, sampler, ids, here, due)
            for action, step_chance in known[ids, due].items():
                new = [list(ids), list(step_map), list(order_map)]
                for order, (place, token) in enumerate(action):
                    new[0][place], new[1][place], new[2][place] = token, max(step_map) + 1, order
                longer[tuple(map(tuple, new))] = chance * step_chance
        paths = longer
    ids, step_map, order_map = (list(x) for x in zip(*paths, strict=True))
    return Enumerated(
        seqs=with_maps(ids, step_map, order_map, width), chance=torch.stack(list(paths.values()))
    )


def with_maps(ids: list, step_map: list, order_map: list, width: int) -> Sequences:
    seqs = sequences(ids, prompts=[PROMPT] * len(ids), step_map=step_map)
    block_map = (torch.arange(len(ids[0])) // width).expand(len(ids), -1)
    return Sequences(**{**vars(seqs), "order_map": torch.tensor(order_map), "block_map": block_map})


def _actions(
    model: TinyDenoiser, sampler: Sampler, ids: tuple[int, ...], here: list[int], due: int
) -> dict[Action, Tensor]:
    shown = torch.tensor([[*PROMPT, *ids]])
    logits = model.logits(shown, torch.ones_like(shown).bool())[0, len(PROMPT) :, :V]
    kappa = logits.detach().softmax(-1).tolist()
    peak = logits.softmax(-1).amax(-1)
    chance = torch.ones(1, dtype=torch.float64)
    for j in here:
        chance = (chance[:, None] * drawn_from(logits[j], sampler)).flatten()
    found: dict[Action, list[Tensor]] = defaultdict(list)
    for n, tokens in enumerate(itertools.product(range(V), repeat=len(here))):
        proposed = dict(zip(here, tokens, strict=True))
        confidence = {j: kappa[j][v] for j, v in proposed.items()}
        for chosen, share in _choices(sampler, here, due, confidence, peak, len(ids)):
            if chance[n] > 0:
                found[tuple((j, proposed[j]) for j in chosen)].append(chance[n] * share)
    return {action: torch.stack(parts).sum() for action, parts in found.items()}


def drawn_from(logits: Tensor, sampler: Sampler) -> Tensor:
    """p_T of one position."""
    p = (logits / sampler.temperature).softmax(-1)
    ranked = sorted(range(V), key=lambda v: -p[v].item())[: sampler.top_k]
    total, kept = sum(p[v].item() for v in ranked), []
    for v in ranked:
        if sampler.top_p is None or sum(p[u].item() for u in kept) / total < sampler.top_p:
            kept.append(v)
    inside = torch.tensor([v in kept for v in range(V)])
    return p * inside / (p * inside).sum()


def _choices(
    sampler: Sampler,
    here: list[int],
    due: int,
    confidence: dict[int, float],
    peak: Tensor,
    length: int,
) -> Iterator[tuple[tuple[int, ...], Tensor | float]]:
    """Positions in the order of choice, and the probability of choosing so."""
    by_confidence = sorted(here, key=lambda j: (-confidence[j], j))
    match sampler.rule:
        case "low_confidence":
            yield tuple(by_confidence[:due]), 1.0
        case "threshold":
            passed = sum(c > sampler.threshold for c in confidence.values())
            least = math.ceil(length / sampler.steps)
            yield tuple(by_confidence[: max(passed, least)]), 1.0
        case "confidence_first":
            yield tuple(sorted(here, key=lambda j: (-peak[j].item(), j))[:due]), 1.0
        case "left_to_right":
            yield tuple(here[:due]), 1.0
        case "random":
            for chosen in itertools.combinations(here, due):
                yield chosen, 1 / math.comb(len(here), due)
        case "plackett_luce":
            weight = peak ** (1 / sampler.position_temperature)
            for chosen in itertools.permutations(here, due):
                share = torch.ones((), dtype=torch.float64)
                for i, j in enumerate(chosen):
                    share = share * weight[j] / sum(weight[k] for k in here if k not in chosen[:i])
                yield chosen, share


def plan_of_steps(seqs: Sequences) -> MaskPlan:
    """One view per step: shown is what was written before, scored is what the step wrote."""
    step_B1L, block_B1L = seqs.step_map[:, None], seqs.block_map[:, None]
    view = torch.arange(int(seqs.step_map.max()) + 1)[:, None]
    written = step_B1L == view
    block_BM1 = torch.where(written, block_B1L, -1).amax(-1, keepdim=True)
    hidden = step_B1L >= view
    return MaskPlan(
        prompt=torch.zeros(*written.shape[:2], seqs.prompt_ids.shape[1], dtype=torch.bool),
        completion=hidden,
        weight=written.double(),
        choice=hidden & (block_B1L == block_BM1),
    )
