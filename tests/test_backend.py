"""What a training run is told before its model is read."""

import pytest

from rl.backend import _check_can_save


def test_zero3_that_could_not_save_is_refused_at_the_start() -> None:
    _check_can_save({"zero_optimization": {"stage3_gather_16bit_weights_on_model_save": True}})
    for lacking in ({}, {"stage3_gather_16bit_weights_on_model_save": False}):
        with pytest.raises(ValueError, match="zero3_save_16bit_model: true"):
            _check_can_save({"zero_optimization": {"stage": 3} | lacking})
