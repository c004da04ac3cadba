"""An exponential that stays finite.

    finite_exp(x) = exp(x)                          x <= 20
                    exp(20) (1 + x - 20)            beyond: the tangent at 20

exp overflows float32 at 88, and 0 * inf in a backward pass is NaN. A ratio of e^20 has no meaning
that training could use; what matters is that its gradient is finite and has the right sign.
"""

from torch import Tensor

CEILING = 20.0


def finite_exp(x: Tensor) -> Tensor:
    return x.clamp(max=CEILING).exp() * (1 + (x - CEILING).clamp(min=0))
