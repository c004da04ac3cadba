"""ModelDenoiser answers like one dense forward per row, without ever building dense logits."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from estimators import Elbo, Estimator, MeanField, RowRandom, Sequences, Trajectory
from rl.models import denoiser as denoiser_module
from rl.models.denoiser import ModelDenoiser, switch_off_dropout
from rl.samplers import SAMPLERS
from tests.tiny_models import bert, llama, pad_left, roberta, sequences

IDS = torch.tensor(
    [[1, 2, 3, 11, 11], [4, 5, 6, 11, 2], [1, 2, 3, 11, 11], [0, 0, 7, 11, 11], [9, 8, 7, 11, 11]]
)
ATTENTION = torch.tensor([[1, 1, 1, 1, 1]] * 3 + [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]).bool()
# every masked position and the start of some rows, out of order, some of them twice
INDEX = torch.tensor([24, 3, 4, 8, 13, 14, 18, 19, 23, 3, 19, 20, 0, 5])


families = pytest.mark.parametrize("make", [bert, llama, roberta])


def raw(logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
    """All logits of each request, and its number to check the order by."""
    return logits[row], entries.clone()


def answers(denoiser: ModelDenoiser) -> Tensor:
    logits, entries = denoiser(IDS, ATTENTION, INDEX, raw)
    assert torch.equal(entries, torch.arange(len(INDEX)))
    return logits


def dense(denoiser: ModelDenoiser) -> Tensor:
    """The native model, one unpadded row at a time."""
    rows: list[Tensor] = []
    for place in INDEX.tolist():
        n, s = divmod(place, IDS.shape[1])
        start = int((~ATTENTION[n]).sum())
        ids = IDS[n : n + 1, start:]
        see_all = torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool)
        places = torch.arange(ids.shape[1])[None]
        out = denoiser.model(input_ids=ids, attention_mask=see_all, position_ids=places)
        logits = out.logits[0, s - start]
        rows.append(logits.index_fill(0, torch.tensor(denoiser.forbidden), -torch.inf))
    return torch.stack(rows).float()


def gradient(denoiser: ModelDenoiser, make: Callable[[ModelDenoiser], Tensor]) -> Tensor:
    """All parameters' gradient of a weighted sum of the log-probs of two tokens."""
    denoiser.model.zero_grad()
    logp = make(denoiser).log_softmax(-1)[:, [1, 4]]
    (logp.sum(-1) * torch.arange(1.0, 1 + len(INDEX))).sum().backward()
    grads = [p.grad.flatten() for p in denoiser.model.parameters() if p.grad is not None]
    assert len(grads) > 10
    return torch.cat(grads)


@families
@pytest.mark.parametrize(
    ("rows_per_forward", "logits_per_chunk", "more"),
    [
        (None, None, 0),
        (3, None, 0),
        (None, 1, 0),
        (None, 24, 0),
        (3, 24, 0),
        (None, 1, 2),
        (3, 24, 2),
    ],
)
def test_values_and_gradients_equal_dense_forwards_of_single_rows(
    make: Any,
    rows_per_forward: int | None,
    logits_per_chunk: int | None,
    more: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However it is cut up: duplicates removed, rows and chunks split, padded with empty calls."""
    if logits_per_chunk is not None:
        monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", logits_per_chunk)
    denoiser = make(rows_per_forward=rows_per_forward, equalize=lambda count: count + more)
    denoiser.model.double()  # so that 1e-6 is not rounding
    torch.testing.assert_close(answers(denoiser), dense(denoiser), rtol=0, atol=1e-5)
    expected = gradient(denoiser, dense)
    assert (gradient(denoiser, answers) - expected).norm() < 1e-6 * expected.norm()


class Together:
    """Notes how many positions, and which entries, come in each call."""

    whole_views = True

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []

    def __call__(self, logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
        self.calls.append((len(logits), entries.tolist()))
        return raw(logits, entries, row)


@pytest.mark.parametrize(
    ("positions_per_chunk", "sizes"),
    [(1, [3, 2, 1, 1]), (3, [3, 3, 1]), (4, [3, 4]), (5, [5, 2]), (9, [7])],
)
def test_positions_of_a_row_stay_together_where_the_reduce_needs_it(
    positions_per_chunk: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of their ids, the distinct rows ask for 3, 2, 1 and 1 positions."""
    denoiser, reduce = bert(), Together()
    monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", positions_per_chunk * 12)
    index = torch.tensor([3, 23, 18, 13, 4, 8, 19, 14, 17])
    found, entries = denoiser(IDS, ATTENTION, index, reduce)
    assert [size for size, _ in reduce.calls] == sizes
    assert torch.equal(entries, torch.arange(len(index)))
    alone = denoiser(IDS, ATTENTION, index, raw)[0]
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-5)
    row = [0, 4, 3, 0, 0, 1, 3, 0, 3]  # of each entry; rows 0 and 2 are equal
    calls = [[row[entry] for entry in entries] for _, entries in reduce.calls]
    assert sum(len(set(rows)) for rows in calls) == 4


def test_equal_rows_are_run_once_even_if_their_padding_differs() -> None:
    denoiser = bert()
    answers(denoiser)
    assert denoiser.forwards == 4
    other = IDS.masked_fill(~ATTENTION, 5)[[3]]
    both = torch.cat([IDS[[3]], other])
    denoiser(both, ATTENTION[[3, 3]], torch.tensor([3, 9]), raw)
    assert denoiser.forwards == 5


def test_calls_that_only_keep_step_with_other_ranks_run_one_row() -> None:
    denoiser = bert(rows_per_forward=2, equalize=lambda count: count + 2)
    answers(denoiser)
    assert denoiser.forwards == 4 + 2


@pytest.mark.parametrize("rows_per_forward", [1, 2])
def test_ranks_with_different_work_call_the_model_and_its_head_equally_often(
    rows_per_forward: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rank has a row and a position, another four rows and eight positions."""
    monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", 1)
    ranks: list[list[str]] = []
    for rows, index in (([0], [3]), ([0, 1, 3, 4], [3, 4, 8, 9, 13, 14, 18, 19])):
        denoiser = bert(rows_per_forward=rows_per_forward, equalize=lambda count: max(count, 5))
        done: list[str] = []
        denoiser.model.base_model.register_forward_hook(lambda *_, done=done: done.append("body"))
        denoiser.model.cls.register_forward_hook(lambda *_, done=done: done.append("head"))
        denoiser(IDS[rows], ATTENTION[rows], torch.tensor(index), raw)
        ranks.append(done)
    assert ranks[0] == ranks[1] == ["body", *["head"] * 5] * 5


@families
def test_forbidden_ids_have_probability_zero(make: Any) -> None:
    denoiser = make()
    probability = answers(denoiser).softmax(-1)
    assert probability[:, 10:].eq(0).all()
    assert probability[:, :10].gt(0).all()


@families
def test_every_visible_token_counts_left_and_right(make: Any) -> None:
    """Bidirectional: the first of two masks sees the token after it, the last sees the first."""
    denoiser = make()
    ids = torch.tensor([[1, 2, 11, 4, 11]])
    attention = torch.ones_like(ids, dtype=torch.bool)
    index = torch.tensor([2, 4])
    (base, _) = denoiser(ids, attention, index, raw)
    for place in (0, 1, 3):
        changed = ids.clone()
        changed[0, place] = 9
        (other, _) = denoiser(changed, attention, index, raw)
        assert (other[:, :10] - base[:, :10]).abs().amax(-1).gt(1e-3).all()


@families
@pytest.mark.parametrize(
    "est", [MeanField(), Elbo(samples=3), Trajectory(segments=None)], ids=["mf", "elbo", "traj"]
)
def test_left_padding_changes_no_estimate(make: Any, est: Estimator) -> None:
    denoiser = make()
    seqs = sequences([[1, 2, 0], [3, 4, 5]], step_map=[[0, 1, 2], [2, 1, 0]])
    padded = pad_left(seqs, 4)
    plain, moved = (est(denoiser, s, est.plan(s, RowRandom([1, 2]))) for s in (seqs, padded))
    torch.testing.assert_close(moved.token_logp, plain.token_logp, rtol=0, atol=1e-5)


def test_evaluating_switches_dropout_and_gradients_off_and_the_mode_back() -> None:
    denoiser = bert(dropout=0.5)
    denoiser.model.train()
    assert not torch.equal(answers(denoiser), answers(denoiser))
    with denoiser.evaluating():
        assert torch.equal(answers(denoiser), answers(denoiser))
        assert not answers(denoiser).requires_grad
    assert denoiser.model.training
    assert answers(denoiser).requires_grad
    denoiser.model.eval()
    with pytest.raises(RuntimeError, match="stop"), denoiser.evaluating():
        raise RuntimeError("stop")
    assert not denoiser.model.training


@families
def test_dropout_can_be_switched_off_for_good(make: Any) -> None:
    denoiser = make(dropout=0.5)
    denoiser.model.train()
    assert not torch.equal(answers(denoiser), answers(denoiser))
    switch_off_dropout(denoiser.model)
    assert torch.equal(answers(denoiser), answers(denoiser))
    assert denoiser.model.training


class Sizes(TorchDispatchMode):
    """Notes the shape of everything that any operation returns, in the backward pass too."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.shapes |= {tuple(x.shape) for x in tree_flatten(out)[0] if isinstance(x, Tensor)}
        return out

    def is_dense(self, N: int, S: int, vocab: int) -> bool:
        return any(torch.Size(shape).numel() >= N * S * vocab for shape in self.shapes)


VOCAB, N, PROMPT, L = 512, 4, 3, 9


def many(seed: int = 0) -> Sequences:
    g = torch.Generator().manual_seed(seed)
    completion = torch.randint(1, 9, (N, L), generator=g).tolist()
    prompts = torch.randint(1, 9, (N, PROMPT), generator=g).tolist()
    return sequences(completion, prompts=prompts, step_map=[[0, 1, 2] * 3] * N)


@families
def test_dense_logits_trip_the_measurement(make: Any) -> None:
    denoiser = make(vocab=VOCAB)
    seqs = many()
    with Sizes() as sizes:
        ids = torch.cat([seqs.prompt_ids, seqs.completion_ids], dim=1)
        assert denoiser.model(input_ids=ids).logits.shape == (N, PROMPT + L, VOCAB)
    assert sizes.is_dense(N, PROMPT + L, VOCAB)


@pytest.mark.parametrize("make", [bert, llama])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("rule", SAMPLERS)
def test_a_rollout_never_builds_dense_logits(
    make: Any, rule: str, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", 5 * VOCAB)
    seqs, denoiser = many(), make(vocab=VOCAB)
    sampler = SAMPLERS[rule](steps=4, temperature=temperature)
    with Sizes() as sizes:
        sampler(denoiser, seqs.prompt_ids, seqs.prompt_mask, L, [1, 2, 3, 4])
    assert not sizes.is_dense(N, PROMPT + L, VOCAB)
    assert (5, VOCAB) in sizes.shapes


@pytest.mark.parametrize("make", [bert, llama])
@pytest.mark.parametrize(
    "est", [MeanField(), Elbo(coupled=True), Trajectory(segments=2)], ids=["mf", "elbo", "traj"]
)
def test_scoring_and_its_backward_pass_never_build_dense_logits(
    make: Any, est: Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", 5 * VOCAB)
    seqs, denoiser = many(), make(vocab=VOCAB)
    plan = est.plan(seqs, RowRandom([1, 2, 3, 4]))
    with Sizes() as sizes:
        est(denoiser, seqs, plan).sequence_logp.sum().backward()
    assert not sizes.is_dense(N, PROMPT + L, VOCAB)
    assert (5, VOCAB) in sizes.shapes
