"""Model families: native transformers classes, described by one `ModelSpec` each."""

from .a2d_qwen2 import A2D_QWEN2
from .a2d_qwen3 import A2D_QWEN3
from .bert import BERT
from .dream import DREAM
from .fast_dllm_v2 import FAST_DLLM_V2
from .llada import LLADA
from .llada2 import LLADA2
from .llada_moe import LLADA_MOE
from .modernbert import MODERNBERT
from .open_dcoder import OPEN_DCODER
from .roberta_prelayernorm import ROBERTA_PRELAYERNORM
from .sdar import SDAR
from .sdar_moe import SDAR_MOE
from .spec import ModelSpec

MODELS: dict[str, ModelSpec] = {
    "llada": LLADA,
    "llada_moe": LLADA_MOE,
    "llada2": LLADA2,
    "dream": DREAM,
    "open_dcoder": OPEN_DCODER,
    "sdar": SDAR,
    "sdar_moe": SDAR_MOE,
    "fast_dllm_v2": FAST_DLLM_V2,
    "a2d_qwen3": A2D_QWEN3,
    "a2d_qwen2": A2D_QWEN2,
    "modernbert": MODERNBERT,
    "bert": BERT,
    "roberta_prelayernorm": ROBERTA_PRELAYERNORM,
}

__all__ = ["MODELS", "ModelSpec"]
