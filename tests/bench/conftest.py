"""A tiny network that was trained for a moment: any network would do, a flat one hides mistakes."""

import pytest

from scripts.bench.tiny import TinyDenoiser, TinyNetwork, train


@pytest.fixture(scope="session")
def network() -> TinyNetwork:
    return train(seed=3, steps=150)


@pytest.fixture(scope="session")
def denoiser(network: TinyNetwork) -> TinyDenoiser:
    return TinyDenoiser(network)
