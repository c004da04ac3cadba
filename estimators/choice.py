"""The probability that a decoder commits these positions and no others: closed form, one forward.

A step sees the masked positions E of its block and commits the positions U. For i in U it writes
v_i, drawn from p_T (`decoding.py`). kappa_j(v) is the probability of v at j at temperature 1, over
all tokens. log P(step) = sum_{i in U} log p_T(v_i) + the choice of U:

    low_confidence  sum_{j in E \\ U} log sum_v p_T,j(v) 1[kappa_j(v) < min_{i in U} kappa_i(v_i)]
                    Every position draws a proposal and the most confident are kept: the others'
                    proposals were less confident. Ties go to the left.
    threshold       the same, with `<= tau` in place of `< min` where all of U passed tau; if they
                    did not, U has min(at_least, |E|) tokens, which every step has at least
                    (otherwise the step has probability 0)
    plackett_luce   sum_{i in U} a_i - log sum_{j in E, not before i} exp a_j,
                    a_j = log max_v kappa_j(v) / position_temperature
    confidence_first, left_to_right
                    0: U follows from the weights or from nothing; the tokens are the whole action
    random          -log C(|E|, |U|): no weight moves it, so it is left out (0)

Proposals are independent given the step's input, so nothing is enumerated. kappa, tau and min come
from the scoring weights themselves, in the same forward. The sets {v : kappa_j(v) < min} jump as
weights change, which happens almost nowhere: the gradient is that of p_T. A choice that the current
weights cannot make has log-prob log(smallest normal number) per position, and gradient zero. Where
rollout and scoring round differently (bf16 in other batches), a near tie may fall on either side.

Paper     none for low_confidence and threshold; Plackett-Luce: DCoLT, arXiv:2505.10446,
          Mask-Aware Policy Gradients, arXiv:2607.15200
Estimates exactly, in a plan with one view per step, at the rollout's temperature and support
Cost      no further forward; the head at all of E instead of U, and |E| x V comparisons per view.
          LLaDA, 256 masks: 0.8 GB at the peak, 160 MB until the view's backward pass

Shapes: C distinct predictions, V vocabulary, K asked ones; B, M, L as in `rows.py`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .decoding import Decoding
from .rows import MaskPlan, RowAligned, Scores, Sequences

PROPOSING = ("low_confidence", "threshold")  # rules that compare proposals
CHOOSING = (*PROPOSING, "plackett_luce")  # rules whose choice has a probability of its own


@dataclass(frozen=True, kw_only=True)
class Asked(RowAligned):
    """Predictions that are asked for, K of them."""

    view: Int[Tensor, " K"]  # number of the view that asks
    place: Int[Tensor, " K"]  # position in the completion
    token: Int[Tensor, " K"]  # the completion's token there
    written: Bool[Tensor, " K"]  # this view's step committed it


def choice_scores(
    logits: Float[Tensor, "C V"],
    tempered: Float[Tensor, "C V"],
    row: Int[Tensor, " K"],
    asked: Asked,
    decoding: Decoding,
) -> Float[Tensor, " K"]:
    """Summands of the choice at each position of whole views; a_j for plackett_luce."""
    if decoding.rule == "plackett_luce":
        assert decoding.position_temperature is not None
        return (logits.amax(-1) - logits.logsumexp(-1))[row] / decoding.position_temperature
    logk_CV = logits.detach().log_softmax(-1)
    bar_K, closed_K, possible_K = _bar(logk_CV[row, asked.token], asked, decoding)
    p_CV = tempered.softmax(-1)
    chance_K = possible_K.to(p_CV)  # of the written ones; now the others
    others = (~asked.written).nonzero()[:, 0]
    for at in range(0, len(others), len(p_CV)):  # several views may share a row
        some = others[at : at + len(p_CV)]
        logk_KV, bar_K1 = logk_CV[row[some]], bar_K[some, None]
        below_KV = (logk_KV < bar_K1) | (closed_K[some, None] & (logk_KV == bar_K1))
        mass = p_CV[row[some]].masked_fill(~below_KV, 0.0).sum(-1)
        chance_K = chance_K.index_put((some,), mass)
    return chance_K.clamp(min=torch.finfo(chance_K.dtype).tiny).log()


def _bar(
    own: Float[Tensor, " K"], asked: Asked, decoding: Decoding
) -> tuple[Float[Tensor, " K"], Bool[Tensor, " K"], Bool[Tensor, " K"]]:
    """What an unkept log kappa stays below, whether it may be equal, and whether a kept one may be.

    own: log kappa of the completion's tokens.
    """
    view, written = asked.view, asked.written
    views = int(view.max()) + 1 if len(view) else 0
    none_R = own.new_full((views,), torch.inf)
    lowest_K = none_R.scatter_reduce(0, view[written], own[written], "amin")[view]
    holds = written & (own == lowest_K)
    none_R = view.new_full((views,), -1)
    last_K = none_R.scatter_reduce(0, view[holds], asked.place[holds], "amax")[view]
    right_K = asked.place > last_K
    if decoding.rule == "low_confidence":
        return lowest_K, right_K, torch.ones_like(written)
    tau = decoding.log_threshold
    all_passed_K = lowest_K > tau
    size_R, least_R = (x.bincount(minlength=views) for x in (view[written], view))
    least_R = least_R.clamp(max=decoding.at_least)
    if decoding.whole_steps:
        forced_K, enough_K = (size_R == least_R)[view], (size_R >= least_R)[view]
    else:
        forced_K, enough_K = (size_R <= decoding.at_least)[view], torch.ones_like(written)
    bar_K = torch.where(all_passed_K, tau, lowest_K)
    return bar_K, all_passed_K | right_K, enough_K & (all_passed_K | forced_K | (own > tau))


def choice_logp(
    seqs: Sequences, plan: MaskPlan, scores: Scores, decoding: Decoding
) -> Float[Tensor, "B M"]:
    """Log-prob of the choice of each view's positions; 0 for rules without a probability.

    The view's step (or its merged steps) wrote the positions with weight, among `plan.choice`.
    """
    if decoding.rule not in CHOOSING or scores.choice is None:
        return torch.zeros_like(scores.token[..., 0])
    if decoding.rule != "plackett_luce":
        return scores.choice.sum(-1)
    assert plan.choice is not None
    if seqs.step_map is None or seqs.order_map is None:
        raise ValueError(
            "the choice of positions in plackett_luce decoding depends on their order, but these "
            "sequences have no step_map or no order_map; take them from our sampler"
        )
    written_BML = plan.weight.ne(0)
    L = written_BML.shape[-1]
    turn_BML = (seqs.step_map * L + seqs.order_map)[:, None].expand_as(written_BML)
    # what cannot be chosen, what was chosen in its order, what was left: a_j summed from the end
    turn_BML = turn_BML.masked_fill(~written_BML, torch.iinfo(turn_BML.dtype).max)
    order_BML = turn_BML.masked_fill(~(plan.choice | written_BML), -1).argsort(-1)
    score_BML = scores.choice.gather(-1, order_BML)
    rest_BML = score_BML.flip(-1).logcumsumexp(-1).flip(-1)
    terms_BML = (score_BML - rest_BML).masked_fill(~written_BML.gather(-1, order_BML), 0.0)
    return terms_BML.sum(-1)
