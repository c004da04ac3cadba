"""Random initial weights that depend on a seed and on nothing else.

PyTorch initialises modules from the global CPU generator. Inside `private_rng` that generator is
at `seed`; afterwards it is where it was. CUDA generators are not touched.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def private_rng(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
