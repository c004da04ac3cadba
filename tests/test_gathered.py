"""One GPU for a process, and ranks in step exactly where parameters are gathered in a forward."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import pytest
import torch
from accelerate import Accelerator
from transformers import TrainingArguments

from rl.gathered import backwards_in_step, in_step, one_gpu


def test_several_visible_gpus_do_not_mean_data_parallel(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    args = TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    args._n_gpu = 8  # what a plain `python -m rl.train` finds on a machine with eight
    assert args.train_batch_size == 8 * args.per_device_train_batch_size
    with caplog.at_level(logging.WARNING, logger="rl"):
        one_gpu(args)
    assert args.n_gpu == 1
    assert args.train_batch_size == args.per_device_train_batch_size
    assert "accelerate launch --num_processes 8" in caplog.text


def accelerator(*, zero_stage: int | None = None, fsdp2: bool = False) -> Any:
    plugin = None if zero_stage is None else SimpleNamespace(zero_stage=zero_stage)
    fake = create_autospec(Accelerator, instance=True)
    fake.state, fake.is_fsdp2 = SimpleNamespace(deepspeed_plugin=plugin), fsdp2
    return fake


@pytest.mark.parametrize(
    ("strategy", "gathered", "expected"),
    [
        ({}, False, False),
        ({"zero_stage": 2}, False, False),
        ({"zero_stage": 3}, False, True),
        ({"zero_stage": 3}, True, False),
        ({"fsdp2": True}, False, True),
        ({"fsdp2": True}, True, True),  # only ZeRO-3 parameters can be gathered for longer
    ],
)
def test_who_must_stay_in_step(strategy: dict[str, Any], gathered: bool, expected: bool) -> None:
    assert (in_step(accelerator(**strategy), gathered=gathered) is not None) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [({}, 3), ({"zero_stage": 1}, 5), ({"zero_stage": 2}, 5), ({"fsdp2": True}, 5)],
)
def test_who_must_run_equally_many_backward_passes(strategy: dict[str, Any], expected: int) -> None:
    """Where each of them exchanges gradients; another rank has 5."""
    fake = accelerator(**strategy)
    fake.device = torch.device("cpu")
    fake.gather.side_effect = lambda mine: torch.cat([mine, torch.tensor([5])])
    assert backwards_in_step(fake, 3) == expected
