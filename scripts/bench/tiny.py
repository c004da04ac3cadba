"""A network so small that all it can ever be asked is a table.

V = 4 symbols, L = 4 completion positions, Q = 2 prompt tokens: (V + 1)^L = 625 partly masked
completions, each under 4 ways of masking the prompt. A bidirectional MLP in float64, trained as a
masked diffusion model on a toy language: two free tokens, and two noisy functions of them and of
the prompt.

Shapes: N rows, S = Q + L tokens, K requests, P parameters; the table has one entry per way of
masking the prompt, state, masked position and symbol.
"""

import itertools
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from .tables import TableDenoiser

V, L, Q = 4, 4, 2
MASK = V
PROMPT = (1, 3)
STATES = torch.tensor(list(itertools.product(range(V + 1), repeat=L)))  # [625, L]
PROMPTS = torch.tensor([(1, 3), (1, MASK), (MASK, 3), (MASK, MASK)])  # shown, or partly masked
PLACE_VALUE = [(V + 1) ** (L - 1 - place) for place in range(L)]
Double = torch.float64


def state_number(completion: Int[Tensor, "*N L"]) -> Int[Tensor, "*N"]:
    """The row of `STATES` that equals a partly masked completion."""
    return (completion * torch.tensor(PLACE_VALUE)).sum(-1)


class TinyNetwork(nn.Module):
    """Two layers and a skip connection; any symbol may depend on any other."""

    def __init__(self, width: int = 4, hidden: int = 20) -> None:
        super().__init__()
        self.embed = nn.Embedding(V + 1, width, dtype=Double)
        self.first = nn.Linear((Q + L) * width, hidden, dtype=Double)
        self.second = nn.Linear(hidden, hidden, dtype=Double)
        self.head = nn.Linear(hidden, L * V, dtype=Double)

    def forward(self, ids: Int[Tensor, "N S"]) -> Float[Tensor, "N L V"]:
        hidden = torch.tanh(self.first(self.embed(ids).flatten(1)))
        hidden = hidden + torch.tanh(self.second(hidden))
        return self.head(hidden).view(-1, L, V)


def toy_language(
    count: int, random: torch.Generator
) -> tuple[Int[Tensor, "N Q"], Int[Tensor, "N L"]]:
    """Prompts and completions; 15 % of the two dependent tokens are noise."""

    def draw(*probabilities: float) -> Tensor:
        weights = torch.tensor(probabilities, dtype=Double)
        return torch.multinomial(weights, count, replacement=True, generator=random)

    def noisy(token: Tensor) -> Tensor:
        other = torch.rand(count, generator=random, dtype=Double) < 0.15
        return torch.where(other, torch.randint(0, V, (count,), generator=random), token)

    prompt = torch.randint(0, V, (count, Q), generator=random)
    first = draw(0.4, 0.3, 0.2, 0.1)
    second = (first + draw(0.5, 0.3, 0.1, 0.1)) % V
    third = noisy((first + second + prompt[:, 0]) % V)
    fourth = noisy((third + first + prompt[:, 1]) % V)
    return prompt, torch.stack([first, second, third, fourth], dim=1)


@cache
def train(seed: int, steps: int = 2000) -> TinyNetwork:
    """Masked diffusion training: t ~ U(0, 1), cross-entropy of the masked tokens over t.

    The same network each time: do not change its weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(seed)
        network = TinyNetwork()
    random = torch.Generator().manual_seed(seed + 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        prompt, completion = toy_language(256, random)
        t = torch.rand(256, 1, generator=random, dtype=Double)
        masked = torch.rand(256, L, generator=random, dtype=Double) < t
        ids = torch.cat([prompt, completion.masked_fill(masked, MASK)], dim=1)
        logp = network(ids).log_softmax(-1).gather(-1, completion[..., None])[..., 0]
        loss = -(logp * masked / t.clamp_min(1e-2)).sum() / 256 / L
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return network


@dataclass(frozen=True, kw_only=True)
class _Tables:
    logits: Float[Tensor, "4 625 L V"]
    jacobian: Float[Tensor, "R P"]
    first: Int[Tensor, "4 625 L"]  # of a masked position: the number of its first entry


class TinyDenoiser(TableDenoiser):
    """The network as a table, with its Jacobian.

    logits: [625, L, V] of the unmasked prompt.
    """

    mask_id = MASK

    def __init__(self, network: TinyNetwork) -> None:
        super().__init__()
        tables = _tabulate(network)
        self._first = tables.first
        self.jacobian = tables.jacobian
        self.jacobian32 = tables.jacobian.float()
        masked = STATES.eq(MASK).expand(len(PROMPTS), -1, -1)
        self.table = tables.logits[masked].flatten()
        self.logits = tables.logits[0]

    def entries(
        self, ids: Int[Tensor, "N S"], attention: Bool[Tensor, "N S"], index: Int[Tensor, " K"]
    ) -> Int[Tensor, "K V E"]:
        S = ids.shape[1]
        hidden_N2 = ids[:, -L - Q : -L].eq(MASK).long()
        pattern_N = 2 * hidden_N2[:, 0] + hidden_N2[:, 1]
        state_N = state_number(ids[:, -L:])
        view, place = index // S, index % S - (S - L)
        first_K = self._first[pattern_N[view], state_N[view], place]
        assert bool((first_K >= 0).all()), "a visible position was asked for"
        return first_K[:, None, None] + torch.arange(V)[:, None]

    def gradient_of_logits(self, grad: Float[Tensor, "625 L V"]) -> Float[Tensor, " P"]:
        """d loss / d theta from d loss / d `logits`."""
        count = grad[STATES.eq(MASK)].numel()
        return grad[STATES.eq(MASK)].flatten() @ self.jacobian[:count]


def _tabulate(network: TinyNetwork) -> _Tables:
    parameters = {name: p.detach() for name, p in network.named_parameters()}
    masked = STATES.eq(MASK)

    def logits(weights: dict[str, Tensor], ids: Tensor) -> Tensor:
        return functional_call(network, weights, (ids[None],))[0]

    every: list[Tensor] = []
    jacobians: list[Tensor] = []
    for prompt in PROMPTS:
        ids = torch.cat([prompt.expand(len(STATES), -1), STATES], dim=1)
        with torch.no_grad():
            every.append(network(ids))
        for part, where in zip(ids.split(125), masked.split(125), strict=True):
            rows = vmap(jacrev(logits), in_dims=(None, 0))(parameters, part)
            flat = torch.cat([rows[name].flatten(3) for name in parameters], dim=-1)
            jacobians.append(flat[where].flatten(0, 1))
    shape = (len(PROMPTS), *masked.shape)
    first = torch.full(shape, -1).masked_scatter(
        masked.expand(shape), V * torch.arange(4 * int(masked.sum()))
    )
    return _Tables(logits=torch.stack(every), jacobian=torch.cat(jacobians), first=first)
