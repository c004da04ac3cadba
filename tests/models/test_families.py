"""What must hold for every family, on small random weights. A new family is a row of LORA."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Elbo, Estimator, MeanField, Trajectory
from rl.advantages import GroupAdvantage
from rl.grpo_config import DiffusionGRPOConfig
from rl.models import MODELS
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel, load
from rl.models.lora import LoraSpec, apply_lora
from rl.models.source import ModelSource
from rl.objectives import Clipped
from rl.reward_calls import RewardCalls
from rl.samplers import LowConfidence
from rl.trainer import DiffusionGRPOTrainer

SEVEN = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
FOUR = SEVEN[:4]
BERT = ("query", "key", "value", "intermediate.dense")
# adapted modules of two layers by the preset "paper", then by "full"
LORA = {
    "llada": (("q_proj", "k_proj", "v_proj", "up_proj"), 8, SEVEN, 14),
    "llada_moe": (FOUR, 8, FOUR, 8),
    "llada2": (FOUR, 8, SEVEN, 14),  # a dense layer, and a shared expert in the other
    "dream": (SEVEN, 14, SEVEN, 14),
    "open_dcoder": (SEVEN, 14, SEVEN, 14),
    "sdar": (SEVEN, 14, SEVEN, 14),
    "sdar_moe": (FOUR, 8, FOUR, 8),
    "fast_dllm_v2": (SEVEN, 14, SEVEN, 14),
    "a2d_qwen3": (SEVEN, 14, SEVEN, 14),
    "a2d_qwen2": (SEVEN, 14, SEVEN, 14),
    "modernbert": (("Wqkv", "Wi"), 4, ("Wqkv", "Wi", "Wo"), 8),
    "bert": (BERT, 8, (*BERT, "output.dense"), 12),
    "roberta_prelayernorm": (BERT, 8, (*BERT, "output.dense"), 12),
}
families = pytest.mark.parametrize("name", LORA)
S = 14
IDS = torch.randint(8, 100, (2, S), generator=torch.Generator().manual_seed(0))


def test_no_family_is_left_out() -> None:
    assert set(LORA) == set(MODELS)


def new(name: str, **source: Any) -> LoadedModel:
    """Weights large enough for predictions that really differ."""
    loaded = load(ModelSource(name=name, config={}, **source), training=True, seed=3)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            if weight.ndim > 1:
                weight *= 4
    return loaded


def answers(loaded: LoadedModel, ids: Tensor, real: Tensor | None = None) -> Tensor:
    """[number of real tokens, V], through the denoiser."""
    real = torch.ones_like(ids, dtype=torch.bool) if real is None else real
    denoiser = ModelDenoiser.of(loaded)
    denoiser.forbidden = ()
    places = real.flatten().nonzero()[:, 0]
    with denoiser.evaluating():
        (logits,) = denoiser(ids, real, places, lambda x, _, row: (x[row],))
    return logits


def native(loaded: LoadedModel, ids: Tensor) -> Tensor:
    """The native model under a mask written out here, aligned as the hub does it: [N, S, V]."""
    place = torch.arange(ids.shape[1])
    seen = torch.ones(len(place), len(place), dtype=torch.bool)
    if loaded.block_size:
        seen = place[:, None] // loaded.block_size >= place[None] // loaded.block_size
    mask = seen.expand(len(ids), 1, -1, -1) if loaded.spec.causal else torch.ones_like(ids)
    with torch.no_grad():
        model = loaded.model.eval()
        logits = model(input_ids=ids, attention_mask=mask, position_ids=place[None]).logits
    shifted = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
    return shifted if loaded.spec.shift else logits


@families
def test_chosen_positions_are_slices_of_the_native_logits(name: str) -> None:
    loaded = new(name)
    everything = native(loaded, IDS)
    torch.testing.assert_close(answers(loaded, IDS), everything.flatten(0, 1), rtol=0, atol=1e-5)
    denoiser = ModelDenoiser.of(loaded)
    index = torch.tensor([S + 9, 3, 4, 3, 0])
    real = torch.ones_like(IDS, dtype=torch.bool)
    with denoiser.evaluating():
        (logits,) = denoiser(IDS, real, index, lambda x, _, row: (x[row],))
    chosen = everything.flatten(0, 1)[index]
    writable = logits.isfinite()
    assert (~writable).any(0).nonzero()[:, 0].tolist() == list(loaded.forbidden_ids)
    torch.testing.assert_close(logits[writable], chosen[writable], rtol=0, atol=1e-5)


@families
def test_who_sees_whom(name: str) -> None:
    """Change token 9: predictions move where it is seen, and only there."""
    loaded = new(name)
    changed = IDS.clone()
    changed[:, 9] = (changed[:, 9] + 7) % 92 + 8
    moved = (answers(loaded, changed) - answers(loaded, IDS)).abs().amax(-1).view(2, S)
    state = (torch.arange(S) - loaded.spec.shift).clamp(min=0)  # that predicts the token
    sees = torch.ones(S, dtype=torch.bool)
    if loaded.block_size:
        assert loaded.block_size == 4
        sees = state >= 8
    assert moved[:, sees].min() > 1e-3
    assert (~sees).sum() == 0 or moved[:, ~sees].max() < 1e-5


@families
def test_left_padding_changes_nothing(name: str) -> None:
    """More padding than a local layer of ModernBERT looks back; what is in it does not matter."""
    loaded = new(name)
    width = 21
    padding = torch.arange(2 * width).view(2, width) % 90 + 8
    padded = torch.cat([padding, IDS], dim=1)
    real = torch.arange(width + S).expand(2, -1) >= width
    expected = answers(loaded, IDS)
    torch.testing.assert_close(answers(loaded, padded, real), expected, rtol=0, atol=1e-5)
    both = torch.cat([padded, torch.cat([IDS, padding], dim=1)])
    reals = torch.cat([real, torch.ones_like(real)])
    assert answers(loaded, both, reals).isfinite().all()
    torch.testing.assert_close(answers(loaded, both, reals)[: 2 * S], expected, rtol=0, atol=1e-5)


@families
def test_eager_attention_is_sdpa(name: str) -> None:
    """A mask of booleans would leak the future here."""
    real = torch.arange(S).expand(2, -1) >= torch.tensor([[3], [0]])
    sdpa, eager = (
        answers(new(name, attn_implementation=how), IDS, real) for how in ("sdpa", "eager")
    )
    assert sdpa.isfinite().all()
    torch.testing.assert_close(eager, sdpa, rtol=0, atol=1e-5)


@families
@pytest.mark.parametrize("preset", ["paper", "full"])
def test_presets_hit_these_modules(name: str, preset: str) -> None:
    paper, of_paper, full, of_full = LORA[name]
    targets, count = (paper, of_paper) if preset == "paper" else (full, of_full)
    loaded = load(ModelSource(name=name, config={}), training=True)
    model = apply_lora(loaded.model, loaded.spec, LoraSpec(r=2, alpha=2, targets=preset))
    hit = [n.split(".lora_A")[0] for n, _ in model.named_parameters() if "lora_A" in n]
    assert len(hit) == count
    ends = {next(t for t in targets if f".{module}".endswith(f".{t}")) for module in hit}
    assert ends == set(targets)


@families
@pytest.mark.parametrize("lora", [False, True], ids=["whole", "lora"])
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable` is deprecated:FutureWarning")
def test_gradient_checkpointing_changes_no_gradient(name: str, lora: bool) -> None:
    def gradients(checkpointing: bool) -> list[Tensor]:
        loaded = new(name)
        model = loaded.model
        if lora:
            model = apply_lora(model, loaded.spec, LoraSpec(r=2, alpha=2, targets="full"))
        if checkpointing:
            loaded.model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
        denoiser = ModelDenoiser.of(loaded, model)
        real = torch.arange(S).expand(2, -1) >= torch.tensor([[3], [0]])
        index = torch.tensor([5, 9, S + 4])
        (top,) = denoiser(IDS, real, index, lambda x, _, row: (x.logsumexp(-1)[row],))
        top.sum().backward()
        return [p.grad for p in model.parameters() if p.grad is not None]

    plain, again = gradients(False), gradients(True)
    assert len(plain) == len(again) > (8 if lora else 10)
    assert sum(g.abs().sum() for g in plain) > 0
    for one, other in zip(plain, again, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)


def graded(completions: list[str], **_: Any) -> list[float]:
    return [sum(ord(c) % 7 for c in text) / 48 for text in completions]


def one_step(name: str, estimator: Estimator, folder: Path) -> tuple[dict[str, float], bool]:
    """What is logged of one rollout and one optimizer step, and whether the weights moved."""
    loaded = new(name)
    before = {n: p.detach().clone() for n, p in loaded.model.named_parameters()}
    config = DiffusionGRPOConfig(
        output_dir=str(folder), save_strategy="no", disable_tqdm=True, max_steps=1,
        num_generations=4, per_device_train_batch_size=8, max_completion_length=8,
        learning_rate=0.1, optim="sgd", bf16=False,
    )  # fmt: skip
    trainer = DiffusionGRPOTrainer(
        loaded=loaded,
        args=config,
        rows=[{"id": str(i), "prompt": "f" + "0123"[: 1 + i] + "="} for i in range(4)],
        sampler=LowConfidence(steps=4, block_length=loaded.block_size),
        estimator=estimator,
        objective=Clipped(),
        advantage=GroupAdvantage(),
        rewards=RewardCalls(["reward"], [graded], [1.0]),
    )
    trainer.train()
    moved = any(not torch.equal(p, before[n]) for n, p in loaded.model.named_parameters())
    return trainer.state.log_history[0], moved


@families
@pytest.mark.parametrize(
    "estimator",
    [MeanField(), Elbo(samples=2), Trajectory(segments=None)],
    ids=["one_step", "elbo", "trajectory"],
)
def test_one_rollout_and_one_step(name: str, estimator: Estimator, tmp_path: Path) -> None:
    """The trajectory's log-probs are those that the sampler recorded."""
    logged, moved = one_step(name, estimator, tmp_path)
    assert moved
    assert logged["ratio/mean"] == pytest.approx(1.0, abs=1e-4)
    assert logged["grad_norm"] > 0
    if isinstance(estimator, Trajectory):
        assert logged["logp/gap"] == pytest.approx(0.0, abs=1e-5)
