"""Who attends to whom: the masks themselves, and FlashAttention-2, which ignores most of them."""

import pytest
import torch

from rl.models import MODELS
from rl.models.attention import AttentionMasks
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import load
from rl.models.source import ModelSource
from tests.models import flash

REAL = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]).bool()
LOWEST = torch.finfo(torch.float32).min


def mask(**settings: object) -> torch.Tensor:
    settings = {"causal_class": True, "implementation": "sdpa"} | settings
    return AttentionMasks(**settings)(REAL, torch.float32)["attention_mask"]


def test_full_attention_sees_every_real_token() -> None:
    seen = mask()
    assert seen.dtype == torch.bool
    assert torch.equal(seen, REAL[:, None, None, :].expand(2, 1, 5, 5))


def test_blocks_are_counted_from_the_first_real_token() -> None:
    """Two tokens a block: 01|23|4 in the first row; two of padding, then 01|2 in the second."""
    seen = mask(block_size=2)[:, 0].int().tolist()
    assert seen[0] == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1] * 5]
    padding = [0, 0, 1, 1, 0]  # sees the first block, so that no row is empty
    assert seen[1] == [padding, padding, [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]


@pytest.mark.parametrize("block_size", [None, 2])
def test_eager_gets_numbers_to_add(block_size: int | None) -> None:
    """A mask of booleans would be added as 0 and 1."""
    seen, added = mask(block_size=block_size), mask(block_size=block_size, implementation="eager")
    assert added.dtype == torch.float32
    assert torch.equal(added, torch.where(seen, 0.0, LOWEST))
    assert added.isfinite().all()


@pytest.mark.parametrize("implementation", ["sdpa", "eager", "flash_attention_2"])
def test_an_encoder_is_told_the_padding_only(implementation: str) -> None:
    """Its layers may see differently far."""
    masks = AttentionMasks(False, implementation)
    assert torch.equal(masks(REAL, torch.float32)["attention_mask"], REAL)
    assert masks(REAL[:1], torch.float32) == {"attention_mask": None}


def test_masks_of_blocks_are_built_once_per_layout() -> None:
    masks = AttentionMasks(True, "sdpa", block_size=2)
    first = masks(REAL, torch.float32)["attention_mask"]
    assert masks(REAL.clone(), torch.float32)["attention_mask"] is first
    other = masks(REAL.flip(0), torch.float32)["attention_mask"]
    assert torch.equal(other, first.flip(0))
    assert masks.built == 2
    for width in range(6, 20):
        masks(torch.ones(1, width, dtype=torch.bool), torch.float32)
    assert len(masks._kept) == 4  # not a leak


def test_a_rollout_of_one_layout_builds_one_mask() -> None:
    denoiser = ModelDenoiser.of(load(ModelSource(name="sdar", config={}), training=False))
    ids = torch.tensor([[0, 7, 8, 9, 3, 3], [7, 8, 9, 10, 3, 3]])
    attention = ids.ne(0)
    for step in range(3):
        ids[:, 4] = 20 + step
        denoiser(ids, attention, torch.tensor([5, 11]), lambda x, _, row: (x[row],))
    assert denoiser.masks.built == 1


# ------------------------------------------------------------------ FlashAttention-2


def test_flash_attention_is_refused_for_blocks_by_name() -> None:
    with pytest.raises(ValueError, match="flash_attention_2 ignores the mask of blocks of 4"):
        AttentionMasks(True, "flash_attention_2", block_size=4)


def test_flash_attention_without_its_package_is_refused_before_loading() -> None:
    source = ModelSource(name="llada", path="nowhere", attn_implementation="flash_attention_2")
    with pytest.raises(ValueError, match=r"needs the package flash-attn.*; and dtype: bfloat16"):
        load(source, training=False)


def test_another_implementation_is_refused() -> None:
    source = ModelSource(name="llada", path="nowhere", attn_implementation="flex_attention")
    with pytest.raises(ValueError, match="'flex_attention'; allowed: sdpa, eager, flash_att"):
        load(source, training=False)


@pytest.mark.parametrize("name", [name for name, spec in MODELS.items() if not spec.block_size])
def test_flash_attention_gets_what_the_other_implementations_see(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpadded batches densely, padded ones as parts of one long row; never causal."""
    loaded = load(ModelSource(name=name, config={}), training=False)
    assert loaded.model._supports_flash_attn
    seen = flash.install(monkeypatch)
    ids = torch.arange(7, 67).view(3, 20)
    real = torch.ones_like(ids, dtype=torch.bool)
    index = torch.arange(15, 20)
    for padded in (False, True):
        if padded:
            real[1, :6] = False
        answers: list[torch.Tensor] = []
        for implementation in ("sdpa", "flash_attention_2"):
            loaded.model.config._attn_implementation = implementation
            denoiser = ModelDenoiser.of(loaded)
            denoiser.masks.implementation = implementation
            with denoiser.evaluating():
                every = torch.cat([index, index + 20, index + 40])
                answers.append(denoiser(ids, real, every, lambda x, _, row: (x[row],))[0])
        writable = answers[0].isfinite()
        difference = (answers[1] - answers[0]).masked_fill(~writable, 0)
        assert difference.abs().max() < 1e-5
        assert (seen.varlen > 0) is padded
    assert seen.dense > 0
    assert seen.causal == {False}
