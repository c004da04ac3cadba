"""Model families: native transformers classes, described by one `ModelSpec` each."""

from .bert import BERT
from .llada import LLADA
from .spec import ModelSpec

MODELS: dict[str, ModelSpec] = {
    "bert": BERT,
    "llada": LLADA,
}

__all__ = ["MODELS", "ModelSpec"]
