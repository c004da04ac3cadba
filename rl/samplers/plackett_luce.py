"""Draw positions without replacement in proportion to their peak probability to a power.

    P(l_1, ..., l_n) = prod_i  w_(l_i) / sum of w over the positions not yet drawn,
    w_l = max_v p(v | z) ^ (1 / position_temperature)

Adding Gumbel noise to log w_l and taking the n largest, in their order, draws from it. The tokens
are drawn afterwards. Small temperatures approach confidence_first, large ones random order.

Source    Mask-Aware Policy Gradients, arXiv:2607.15200 (position_temperature 0.5); DCoLT,
          arXiv:2505.10446, has the law with learned weights
"""

from dataclasses import dataclass, replace

from jaxtyping import Int
from torch import Tensor

from estimators import Decoding

from .base import Sampler
from .proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(Sampler):
    """position_temperature: of the draw of positions."""

    rule = "plackett_luce"
    summary = "positions drawn in proportion to a power of their highest probability"
    paper = "Mask-Aware Policy Gradients, arXiv:2607.15200"

    position_temperature: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.position_temperature < float("inf"):
            raise ValueError(
                f"position_temperature is {self.position_temperature}; it must be positive and "
                "finite. The limit 0 is the sampler confidence_first"
            )

    def decoding(self, length: int) -> Decoding:
        common = super().decoding(length)
        return replace(common, position_temperature=self.position_temperature)

    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        gumbel = -(-proposal.noise.clamp(min=2**-60).log()).log()
        return proposal.first(proposal.peak / self.position_temperature + gumbel)
