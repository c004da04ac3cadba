"""The distribution that tokens are drawn from and scored under."""

import math

import pytest
import torch
from torch import Tensor

from estimators import PLAIN, Decoding, score
from estimators.choice import CHOOSING, PROPOSING
from rl.samplers import SAMPLERS
from tests.enumeration import plan_of_steps, with_maps
from tests.tiny_models import TinyDenoiser

P = [0.1, 0.4, 0.3, 0.2]


def kept(p: list[float], **settings) -> list[float]:
    logits = torch.tensor([p], dtype=torch.float64).log()
    return Decoding(**settings).tempered(logits).softmax(-1)[0].tolist()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, P),
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"top_k": 3}, [0, 4 / 9, 3 / 9, 2 / 9]),
        ({"top_k": 4}, P),
        ({"top_k": 9}, P),
        ({"top_p": 0.01}, [0, 1, 0, 0]),  # one token at least
        ({"top_p": 0.39}, [0, 1, 0, 0]),
        ({"top_p": 0.41}, [0, 4 / 7, 3 / 7, 0]),  # the one that reaches it belongs to it
        ({"top_p": 0.69}, [0, 4 / 7, 3 / 7, 0]),
        ({"top_p": 0.71}, [0, 4 / 9, 3 / 9, 2 / 9]),
        ({"top_p": 1.0}, P),
        # of the two best, 4/7 and 3/7, the first reaches 0.5; of all four it would not
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0]),
        # at T = 1/2: 1, 16, 9, 4 of 30; the first two reach 0.8, at T = 1 they would not
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 9 / 30, 4 / 30]),
        ({"temperature": 0.5, "top_p": 0.8}, [0, 16 / 25, 9 / 25, 0]),
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.9}, [0, 16 / 29, 9 / 29, 4 / 29]),
    ],
)
def test_temperature_then_top_k_then_top_p(settings: dict, expected: list[float]) -> None:
    assert kept(P, **settings) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("settings", [{"top_k": 1}, {"top_k": 2}, {"top_p": 0.3}, {"top_p": 0.5}])
def test_equal_tokens_stay_together(settings: dict) -> None:
    assert kept([0.1, 0.3, 0.3, 0.3], **settings) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])


def test_forbidden_tokens_never_come_back() -> None:
    logits = torch.tensor([[0.0, -math.inf, -math.inf]])
    for settings in ({"top_k": 2}, {"top_p": 0.99}, {"top_k": 2, "top_p": 0.99}):
        assert Decoding(**settings).tempered(logits).softmax(-1).tolist() == [[1, 0, 0]]


def test_rows_do_not_disturb_each_other() -> None:
    logits = torch.tensor([[0.1, 0.4, 0.3, 0.2], [0.97, 0.01, 0.01, 0.01]]).log()
    found = Decoding(top_p=0.6).tempered(logits).isfinite()
    assert found.int().tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]


def token_logp(logits: Tensor, token: int, **settings) -> Tensor:
    decoding = Decoding(**settings)
    one = torch.tensor([0])
    return decoding.token_logp(logits, decoding.tempered(logits), one, torch.tensor([token]))


@pytest.mark.parametrize(("token", "expected"), [(1, 4 / 7), (2, 3 / 7), (3, 2 / 9), (0, 1 / 8)])
def test_a_token_outside_of_the_support_is_added_to_it(token: int, expected: float) -> None:
    """top_k = 2 holds 0.4 and 0.3; the token 0.2 makes it 2 / (4 + 3 + 2)."""
    logits = torch.tensor([P], dtype=torch.float64).log().requires_grad_()
    logp = token_logp(logits, token, top_k=2)
    assert logp.exp().item() == pytest.approx(expected)
    logp.backward()
    support = {1, 2, token}
    gradient = [(v == token) - p * (v in support) for v, p in enumerate(_shares(support))]
    assert logits.grad[0].tolist() == pytest.approx(gradient)


def _shares(support: set[int]) -> list[float]:
    return [p / sum(P[v] for v in support) for p in P]


@pytest.mark.parametrize("rule", ["random", *CHOOSING])
def test_scores_are_under_the_truncated_distribution(rule: str) -> None:
    model = TinyDenoiser()
    seqs = with_maps([[1, 2]], [[0, 0]], [[0, 1]], 2)
    own = {"threshold": 0.5} if rule == "threshold" else {"position_temperature": 0.5}
    decoding = Decoding(rule=rule, temperature=0.7, top_k=2, **own)
    ids = torch.tensor([[1, 2, 3, 3]])
    logits = model.logits(ids, torch.ones_like(ids).bool())[0, 2:]
    expected = [
        token_logp(logits[i : i + 1], token, temperature=0.7, top_k=2)
        for i, token in enumerate((1, 2))
    ]
    found = score(model, seqs, plan_of_steps(seqs), decoding).token
    torch.testing.assert_close(found.flatten(), torch.cat(expected), rtol=0, atol=1e-12)


def test_samplers_say_how_they_decode() -> None:
    common = {"temperature": 0.7, "top_k": 5, "top_p": 0.9}
    for rule, sampler in SAMPLERS.items():
        found = sampler(steps=4, **common).decoding(8)
        assert (found.rule, found.temperature, found.top_k, found.top_p) == (rule, 0.7, 5, 0.9)
        assert (found.threshold is not None) == (rule == "threshold")
        assert (found.position_temperature is not None) == (rule == "plackett_luce")
        assert found.at_least == (2 if rule == "threshold" else 1)
        assert sampler(steps=8).decoding(8).one_by_one == (rule != "threshold")
        assert not found.one_by_one
    assert SAMPLERS["random"](steps=4, temperature=0.0).decoding(8).temperature == 1.0


def test_a_plain_decoding_changes_no_logits() -> None:
    logits = torch.tensor([[1.0, 2.0]])
    assert PLAIN.tempered(logits) is logits


def test_rules_that_choose_by_chance_are_samplers() -> None:
    assert set(PROPOSING) < set(CHOOSING) < set(SAMPLERS)
