"""Three ways to one gradient: through all views at once, or view by view.

    s = scores of all views,   loss(s) = objective(estimator.combine(s)),   c = d loss / d s
    d loss / d parameters  =  sum over views m of  d (c_m . s_m) / d parameters

    joint    one graph through all views
    replay   s without gradients gives c; then one view at a time: forward, backward of c_m . s_m
    linear   as replay, without the first pass: c is the same whatever s is

replay is exact for any loss; linear where the estimate is linear in the scores and the loss in the
estimate. Cost of a view, in forward passes (a backward pass is two): joint 3, replay 4, linear 3.
Activations: joint holds those of all views, the others those of one.

Ranks exchange gradients once, after the last view.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import Tensor, nn

from estimators import MaskPlan, Scores, Sequences
from rl.gathered import backwards_in_step
from rl.scoring import Scorer

Mode = Literal["joint", "linear", "replay"]

# (scores, whether they stand for unknown ones) -> (loss, whatever else is of interest)
Evaluate = Callable[[Scores, bool], tuple[Tensor, Any]]


def choose_mode(wanted: Mode | None, *, views: int, linear: bool, dropout: bool) -> Mode:
    """The recipe's mode, or the cheapest that holds one view in memory.

    linear: it would be exact. dropout: two passes would drop different units.
    """
    if wanted is not None:
        return wanted
    if views == 1 or (dropout and not linear):
        return "joint"
    return "linear" if linear else "replay"


def check_mode(wanted: Mode | None, *, linear: bool, dropout: bool) -> None:
    """Raise ValueError if the mode that a recipe asks for would not be exact."""
    if wanted == "linear" and not linear:
        raise ValueError(
            "linear is not exact here, because the gradient depends on the current log-probs; it "
            "needs an estimate that is linear in the scores, and a loss that is linear in the "
            "estimate (or updates that all directly follow their rollout); use replay or null"
        )
    if wanted == "replay" and dropout:
        raise ValueError(
            "replay scores every view twice, and dropout would make the two differ; set "
            "trainer.disable_dropout to true, or use joint"
        )


@dataclass(frozen=True, kw_only=True)
class Backward:
    scorer: Scorer
    accelerator: Accelerator

    def __call__(
        self,
        mode: Mode,
        model: nn.Module,
        sequences: Sequences,
        plan: MaskPlan,
        evaluate: Evaluate,
    ) -> tuple[Tensor, Any]:
        """(a loss, what `evaluate` told besides it).

        The loss has its true value; back-propagating it completes the gradient.
        """
        if mode == "joint":
            return evaluate(self.scorer.run(model, sequences, plan), False)
        if mode == "replay":
            scores = self.scorer.without_gradients(model, sequences, plan)
            coefficients, loss, told = _derivative(scores, evaluate, False)
            _, term = self._view_by_view(model, sequences, plan, coefficients)
        else:
            unknown = Scores(token=torch.zeros_like(plan.weight, dtype=torch.float32))
            coefficients, _, _ = _derivative(unknown, evaluate, True)
            scores, term = self._view_by_view(model, sequences, plan, coefficients)
            with torch.no_grad():
                loss, told = evaluate(scores, False)
        return term + (loss - term).detach(), told

    def _view_by_view(
        self, model: nn.Module, sequences: Sequences, plan: MaskPlan, coefficients: Scores
    ) -> tuple[Scores, Tensor]:
        """(scores of all views, the last view's term, which is still to be back-propagated)."""
        views = plan.weight.shape[1]
        rounds = backwards_in_step(self.accelerator, views)
        seen: list[Scores] = []
        term = torch.zeros(())
        for m in range(rounds):
            here, last = slice(m, m + 1), m == rounds - 1
            part = plan.views(here) if m < views else _nothing(plan)
            with nullcontext() if last else self._before_the_last(model):
                scores = self.scorer.run(model, sequences, part)
                term = _dot(scores, coefficients, here)
                if not last:
                    self._back(term)
            seen.append(_detached(scores))
        return _joined(seen[:views]), term

    def _back(self, term: Tensor) -> None:
        deepspeed = self.accelerator.distributed_type == DistributedType.DEEPSPEED
        # as in Trainer.training_step: losses are divided by the totals of a whole optimizer step
        self.accelerator.backward(term, **({"scale_wrt_gas": False} if deepspeed else {}))

    @contextmanager
    def _before_the_last(self, model: nn.Module) -> Iterator[None]:
        """Gradients are kept back: no exchange between ranks, no optimizer step of DeepSpeed."""
        accelerator, syncs = self.accelerator, self.accelerator.sync_gradients
        deepspeed = accelerator.distributed_type == DistributedType.DEEPSPEED
        accelerator.sync_gradients = False
        try:
            with nullcontext() if deepspeed else accelerator.no_sync(model):
                yield
        finally:
            accelerator.sync_gradients = syncs


def _derivative(scores: Scores, evaluate: Evaluate, unknown: bool) -> tuple[Scores, Tensor, Any]:
    """(d loss / d scores, the loss, what `evaluate` told besides it)."""
    with torch.enable_grad():
        token = scores.token.detach().requires_grad_()
        choice = None if scores.choice is None else scores.choice.detach().requires_grad_()
        loss, told = evaluate(Scores(token=token, choice=choice), unknown)
        leaves = [token] if choice is None else [token, choice]
        found = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
    return Scores(token=found[0], choice=None if choice is None else found[1]), loss.detach(), told


def _dot(scores: Scores, coefficients: Scores, views: slice) -> Tensor:
    term = (scores.token * coefficients.token[:, views]).sum()
    if scores.choice is not None and coefficients.choice is not None:
        term = term + (scores.choice * coefficients.choice[:, views]).sum()
    return term


def _nothing(plan: MaskPlan) -> MaskPlan:
    """For a rank whose views are all done while others still have some: it asks for nothing."""
    view = plan.views(slice(0, 1))
    return replace(view, weight=torch.zeros_like(view.weight))


def _detached(scores: Scores) -> Scores:
    choice = None if scores.choice is None else scores.choice.detach()
    return Scores(token=scores.token.detach(), choice=choice)


def _joined(parts: list[Scores]) -> Scores:
    choices = [part.choice for part in parts if part.choice is not None]
    return Scores(
        token=torch.cat([part.token for part in parts], dim=1),
        choice=torch.cat(choices, dim=1) if choices else None,
    )
