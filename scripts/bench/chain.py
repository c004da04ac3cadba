"""Noise at realistic length: a denoiser whose conditionals are exact for any mask.

A Markov chain q(o) = prod_l P[o_{l-1}, o_l], o_{-1} = 0, has closed forms. Given the nearest
visible neighbours a < l < b of a masked position,

    p(o_l = v | visible)  ~  (P^(l-a))[o_a, v] (P^(b-l))[v, o_b]          (no b: 1)

All conditionals come from one joint: every order of writing gives q(o), the ELBO equals log q(o),
and what an estimator adds is noise, or the bias of a surrogate. theta are the logits of P.

    bias, std       of the estimate minus log q(o), per token; std over masks
    relvar, cosine  of one gradient of the estimate and the exact score d log q(o) / d theta
    shared, independent   std, in nats, of the log-ratio of two policies under one plan or two

Shapes: V symbols, L positions, S = 1 + L (a padding token first), N views, K requests, E = 2
entries per logit, B = C x D rows: D plans of each of C completions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import Estimator, Sequences

from .tables import BatchRandom, TableDenoiser

V = 6
Double = torch.float64
CELLS = 2**21  # rows x views x positions in memory at a time


class ChainDenoiser(TableDenoiser):
    """Logits are sums of two entries of the table log P^k, k = 1..L."""

    mask_id = V

    def __init__(self, theta: Float[Tensor, "V V"], length: int) -> None:
        super().__init__()
        self.theta = theta
        power, slope = _powers(theta, length)
        nothing = torch.zeros(1, V * V, dtype=Double)  # the entry of a neighbour that is not there
        self.table = torch.cat([power.log().flatten(), nothing[:, 0]])
        self.jacobian = torch.cat([(slope / power[..., None]).flatten(0, 2), nothing])

    def entries(
        self, ids: Int[Tensor, "N S"], attention: Bool[Tensor, "N S"], index: Int[Tensor, " K"]
    ) -> Int[Tensor, "K V E"]:
        S = ids.shape[1]
        place = torch.arange(S).expand_as(ids)
        symbol = ids.index_fill(1, torch.tensor(0), 0)  # o_{-1} stands where the padding is
        visible = symbol.ne(self.mask_id)
        left = place.masked_fill(~visible, -1).cummax(-1).values
        right = place.masked_fill(~visible, S).flip(-1).cummin(-1).values.flip(-1)
        view, here = index // S, index % S
        a, b = left[view, here], right[view, here]
        start, end = symbol[view, a], symbol[view, b.clamp(max=S - 1)]
        v = torch.arange(V)
        before = _entry((here - a)[:, None], start[:, None], v)
        after = _entry((b - here)[:, None], v, end[:, None])
        after = after.masked_fill((b == S)[:, None], len(self.table) - 1)
        return torch.stack([before, after], dim=-1)

    def truth(
        self, completion: Int[Tensor, "C L"]
    ) -> tuple[Float[Tensor, " C"], Float[Tensor, "C P"]]:
        """log q(o), and its gradient."""
        before = torch.cat([torch.zeros_like(completion[:, :1]), completion[:, :-1]], dim=1)
        entry = _entry(torch.ones_like(before), before, completion)
        return self.table[entry].sum(-1), self.jacobian[entry].sum(1)


def _powers(
    theta: Float[Tensor, "V V"], length: int
) -> tuple[Float[Tensor, "T V V"], Float[Tensor, "T V V P"]]:
    """P, P^2, ..., and their derivatives.

    d P[i, j] / d theta[a, b] = 1[i = a] P[i, j] (1[j = b] - P[i, b])
    """
    step, eye = theta.softmax(-1), torch.eye(V, dtype=Double)
    inside = torch.einsum("ij,jb->ijb", step, eye) - torch.einsum("ij,ib->ijb", step, step)
    slope = torch.einsum("ia,ijb->ijab", eye, inside).flatten(2)
    powers, slopes = [step], [slope]
    for _ in range(length):
        left = torch.einsum("ijp,jk->ikp", slopes[-1], step)
        slopes.append(left + torch.einsum("ij,jkp->ikp", powers[-1], slope))
        powers.append(powers[-1] @ step)
    return torch.stack(powers), torch.stack(slopes)


def _entry(power: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Where log (P^power)[start, end] stands in the table."""
    return (power - 1) * V * V + start * V + end


@dataclass(frozen=True, kw_only=True)
class ChainRow:
    """One estimator at one length; see the top of the file."""

    estimator: str
    length: int
    forwards: float
    bias_per_token: float
    std_per_token: float
    relvar: float
    cosine: float
    shared: float
    independent: float
    true_change: float  # mean |log-ratio| of the two policies


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Two chains, near each other, and completions of the first."""

    length: int
    denoiser: ChainDenoiser
    changed: ChainDenoiser
    completion: Int[Tensor, "C L"]


def make_chain(
    length: int, *, completions: int = 12, sharpness: float = 3.0, seed: int = 1
) -> Chain:
    """sharpness: standard deviation of the transition logits; the change has 0.03."""
    random = torch.Generator().manual_seed(seed)
    theta = sharpness * torch.randn(V, V, generator=random, dtype=Double)
    change = 0.03 * torch.randn(V, V, generator=random, dtype=Double)
    step = theta.softmax(-1)
    tokens = [torch.zeros(completions, dtype=torch.long)]
    for _ in range(length):
        tokens.append(torch.multinomial(step[tokens[-1]], 1, generator=random)[:, 0])
    return Chain(
        length=length,
        denoiser=ChainDenoiser(theta, length),
        changed=ChainDenoiser(theta + change, length),
        completion=torch.stack(tokens[1:], dim=1),
    )


def _sequences(completion: Int[Tensor, "B L"]) -> Sequences:
    """As written from left to right, one token per step."""
    B, L = completion.shape
    every = torch.arange(L).expand(B, L)
    return Sequences(
        prompt_ids=torch.arange(B)[:, None],
        prompt_mask=torch.zeros(B, 1, dtype=torch.bool),
        completion_ids=completion,
        completion_mask=torch.ones(B, L, dtype=torch.bool),
        step_map=every,
        order_map=torch.zeros_like(every),
        block_map=torch.zeros_like(every),
    )


def measure_noise(
    name: str, estimator: Estimator, chain: Chain, *, plans: int = 30, seed: int = 0
) -> ChainRow:
    """`plans` plans of every completion; 2 are enough for an estimator that draws nothing."""
    C, L = chain.completion.shape
    probe = _sequences(chain.completion)
    one, two = (estimator.plan(probe, BatchRandom(C, number)) for number in (0, 1))
    D = (
        2
        if torch.equal(one.completion, two.completion) and torch.equal(one.weight, two.weight)
        else plans
    )
    rows = torch.arange(C).repeat_interleave(D)
    seqs = _sequences(chain.completion[rows])
    plan = estimator.plan(seqs, BatchRandom(C * D, seed))
    size = max(1, CELLS // (plan.weight.shape[1] * L))
    value, changed, gradient, forwards = [], [], [], 0
    for part in torch.arange(C * D).split(size):
        some = seqs.rows(part)
        some.prompt_ids[:, 0] = torch.arange(len(part))
        chain.denoiser.forget()
        estimate = estimator(chain.denoiser, some, plan.rows(part)).sequence_logp
        estimate.sum().backward()
        gradient.append(chain.denoiser.gradients(len(part)).each(chain.denoiser.jacobian))
        forwards += int(chain.denoiser.forwards(torch.arange(len(part))).sum())
        value.append(estimate.detach())
        with torch.no_grad():
            changed.append(estimator(chain.changed, some, plan.rows(part)).sequence_logp)
            chain.changed.forget()
    value_CD, changed_CD = (torch.cat(x).view(C, D) for x in (value, changed))
    gradient_CDP = torch.cat(gradient).view(C, D, -1)
    exact_C, score_CP = chain.denoiser.truth(chain.completion)
    cosine_CD = torch.cosine_similarity(gradient_CDP, score_CP[:, None], dim=-1)
    noise_C = gradient_CDP.var(1).sum(-1) / score_CP.square().sum(-1)
    shared = (changed_CD - value_CD).std(1)
    independent = (changed_CD - value_CD.roll(1, dims=1)).std(1)
    return ChainRow(
        estimator=name,
        length=L,
        forwards=forwards / (C * D),
        bias_per_token=float((value_CD.mean(1) - exact_C).mean()) / L,
        std_per_token=float(value_CD.std(1).mean()) / L,
        relvar=float(noise_C.mean()),
        cosine=float(cosine_CD.mean()),
        shared=float(shared.mean()),
        independent=float(independent.mean()),
        true_change=float((chain.changed.truth(chain.completion)[0] - exact_C).abs().mean()),
    )


def bench_chain(
    estimators: Mapping[str, Estimator],
    lengths: tuple[int, ...] = (64, 256),
    seed: int = 0,
    *,
    plans: int = 30,
    on_row: Callable[[ChainRow], None] = lambda row: None,
) -> list[ChainRow]:
    """The noise of every estimator at every length."""
    rows: list[ChainRow] = []
    for length in lengths:
        chain = make_chain(length)
        for name, estimator in estimators.items():
            rows.append(measure_noise(name, estimator, chain, plans=plans, seed=seed))
            on_row(rows[-1])
    return rows
