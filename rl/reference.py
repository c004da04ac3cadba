"""The reference policy of the KL term: adapters switched off, or a frozen copy."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator, DeepSpeedPlugin
from torch import nn


def is_adapted(model: nn.Module) -> bool:
    return hasattr(model, "disable_adapter")


class Reference:
    """The policy as it was before training.

    model: the policy about to be trained. With LoRA the base weights are the reference, so no
        copy is made.
    frozen: a second model to use instead of a copy; needed where parameters are partitioned at
        load time and cannot be copied.
    """

    def __init__(self, model: nn.Module, frozen: nn.Module | None = None) -> None:
        self._frozen = None
        if not is_adapted(model):
            self._frozen = (
                (frozen if frozen is not None else copy.deepcopy(model))
                .requires_grad_(False)
                .eval()
            )

    def prepare(self, accelerator: Accelerator) -> None:
        """Put a frozen copy where the policy is, in its precision; ZeRO-3 partitions it too."""
        if self._frozen is None:
            return
        plugin = accelerator.state.deepspeed_plugin
        if plugin is not None:
            self._frozen = _engine(self._frozen, plugin)
        else:
            self._frozen = self._frozen.to(accelerator.device)

    @contextmanager
    def active(self, policy: nn.Module, accelerator: Accelerator) -> Iterator[nn.Module]:
        """The module to score with, as long as the context lasts."""
        if self._frozen is not None:
            yield self._frozen
            return
        adapted: Any = accelerator.unwrap_model(policy)
        with adapted.disable_adapter():
            yield policy


def _engine(model: nn.Module, plugin: DeepSpeedPlugin) -> Any:
    import deepspeed

    config = copy.deepcopy(plugin.deepspeed_config)
    if plugin.zero_stage != 3:
        config["zero_optimization"]["stage"] = 0  # nothing to partition without an optimizer
    for key in ("optimizer", "scheduler"):
        config.pop(key, None)
    engine, *_ = deepspeed.initialize(model=model, config=config)
    engine.eval()
    return engine
