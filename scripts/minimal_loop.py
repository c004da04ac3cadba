"""The whole algorithm in one file. Read this first.

    python scripts/minimal_loop.py [mean_field | elbo | trajectory] [--steps 150] [--seed 0]

A two-layer transformer learns, from reward alone, to write the first prompt token four times. The
real trainer does the same five things; what it adds is batching, LoRA, ranks and logging.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # also runs without an installation

import torch
from torch import Tensor, nn

from estimators import ESTIMATORS, RowRandom, Sequences
from rl.advantages import GroupAdvantage
from rl.objectives import Clipped, Totals

VOCAB, MASK = 8, 8  # tokens 0..7, and the mask
PROMPT, LENGTH, DENOISING_STEPS = 2, 4, 4
PROMPTS, GROUP, PASSES = 16, 8, 2  # per step: prompts, completions of each, updates on them


class TinyDenoiser(nn.Module):
    """A masked diffusion model: from a partly masked text to a distribution for every position."""

    mask_id = MASK

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCAB + 1, width)
        self.place = nn.Parameter(torch.randn(PROMPT + LENGTH, width) * 0.1)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCAB)  # it cannot predict the mask

    def logits(self, ids: Tensor) -> Tensor:
        return self.head(self.body(self.token(ids) + self.place))

    def forward(self, ids: Tensor, attention: Tensor, index: Tensor, reduce) -> tuple[Tensor, ...]:
        """The convention of `estimators.Denoiser`: `reduce` the logits of some positions."""
        rows = torch.arange(len(index))
        return reduce(self.logits(ids).flatten(0, 1)[index], rows, rows)


@torch.no_grad()
def denoise(model: TinyDenoiser, prompt: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Low-confidence remasking: propose a token everywhere, commit the most confident one."""
    completion = torch.full((len(prompt), LENGTH), MASK)
    step_map = torch.zeros_like(completion)
    for step in range(DENOISING_STEPS):
        probs = model.logits(torch.cat([prompt, completion], 1))[:, PROMPT:].softmax(-1)
        token = torch.multinomial(probs.flatten(0, 1), 1, generator=rng).view_as(completion)
        confidence = probs.gather(-1, token[..., None])[..., 0]
        confidence[completion != MASK] = -1
        best = confidence.topk(LENGTH // DENOISING_STEPS, dim=1).indices
        completion.scatter_(1, best, token.gather(1, best))
        step_map.scatter_(1, best, step)
    return completion, step_map


def main(name: str = "mean_field", steps: int = 150, seed: int = 0) -> list[float]:
    rng = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.random.manual_seed(seed)
        model = TinyDenoiser()
    estimator = ESTIMATORS[name]()
    objective, advantage = Clipped(epsilon=0.2), GroupAdvantage()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history = []
    for step in range(steps):
        # 1. rollout: GROUP completions of each prompt
        prompt = torch.randint(VOCAB, (PROMPTS, PROMPT), generator=rng).repeat_interleave(GROUP, 0)
        completion, step_map = denoise(model, prompt, rng)
        sequences = Sequences(
            prompt_ids=prompt,
            prompt_mask=torch.ones_like(prompt, dtype=torch.bool),
            completion_ids=completion,
            completion_mask=torch.ones_like(completion, dtype=torch.bool),
            step_map=step_map,
        )
        # 2. reward, and how much better than the rest of the group
        reward = (completion == prompt[:, :1]).float().mean(1)
        advantages = advantage(reward, GROUP)
        # 3. plan: where the masks go; drawn once, so that the ratio below starts at exactly 1
        rows = [step * 1000 + i for i in range(len(prompt))]
        plan = estimator.plan(sequences, RowRandom(rows, [i // GROUP for i in rows]))
        # 4. log-probs of the policy that wrote the completions
        with torch.no_grad():
            old = estimator(model, sequences, plan)
        # 5. updates
        scored = estimator.scored(sequences)
        totals = Totals(tokens=float(scored.sum()), sequences=len(prompt), length=LENGTH)
        for _ in range(PASSES):
            new = estimator(model, sequences, plan)
            loss = objective(new, old, None, advantages, scored, totals).loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        history.append(reward.mean().item())
        if step % 25 == 0 or step == steps - 1:
            print(
                f"{name}  step {step:4d}  reward {history[-1]:.3f}  {'#' * int(40 * history[-1])}"
            )
    return history


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="GRPO on a tiny masked diffusion model.")
    parser.add_argument("estimator", nargs="?", default="mean_field", choices=list(ESTIMATORS))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    main(arguments.estimator, arguments.steps, arguments.seed)
