"""Model families: native transformers classes, described by one `ModelSpec` each."""

from .bert import BERT
from .llada import LLADA
from .roberta_prelayernorm import ROBERTA_PRELAYERNORM
from .spec import ModelSpec

MODELS: dict[str, ModelSpec] = {
    "bert": BERT,
    "llada": LLADA,
    "roberta_prelayernorm": ROBERTA_PRELAYERNORM,
}

__all__ = ["MODELS", "ModelSpec"]
