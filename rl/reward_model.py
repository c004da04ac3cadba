"""A reward model: a sequence classifier of transformers, frozen, that scores prompt + completion.

    rewards:
      - {name: reward_model, path: runs/judge, batch_size: 16}

With a chat template the tokenizer writes the conversation; without one, prompt and completion are
its pair of texts. Texts are sorted by length and padded on the right behind an attention mask, so
that a score depends on its own text only (up to rounding). What is too long loses its beginning,
which is told. It is loaded at the first call, once in every process, whole also under ZeRO-3.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.integrations import deepspeed

from rewards.base import text_of

logger = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
UNLIMITED = 10**6  # tokenizers without a limit of their own say some huge number


@dataclass(frozen=True, kw_only=True)
class RewardModel:
    """
    path: a folder or a name on the hub.
    label: the index or name of the class whose score counts; only for several classes.
    probability: its probability instead of its logit.
    max_length: tokens of prompt and completion; the model's own limit if not given.
    device: "auto" is this process's GPU if there is one.
    """

    path: str
    revision: str | None = None
    batch_size: int = 16
    label: int | str | None = None
    probability: bool = False
    max_length: int | None = None
    device: str = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    _told: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; use 1 or more")
        try:
            torch.device("cpu" if self.device == "auto" else self.device)
        except RuntimeError as error:
            raise ValueError(f"device is {self.device!r}; use auto, cpu, cuda or cuda:N") from error

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float]:
        """One score per completion."""
        encoded = [self._encoded(p, c) for p, c in zip(prompts, completions, strict=True)]
        truncated = [len(ids["input_ids"]) > self._room for ids in encoded]
        self._tell_truncated(sum(truncated), len(truncated))
        if "log_metric" in columns and encoded:
            columns["log_metric"]("reward_model/truncated", sum(truncated) / len(encoded))
        kept = [{key: ids[-self._room :] for key, ids in each.items()} for each in encoded]
        order = sorted(range(len(kept)), key=lambda i: len(kept[i]["input_ids"]))
        scores = [0.0] * len(kept)
        for at in range(0, len(order), self.batch_size):
            batch = order[at : at + self.batch_size]
            found = self._scores([kept[i] for i in batch]).tolist()
            for i, score in zip(batch, found, strict=True):
                scores[i] = score
        return scores

    @torch.inference_mode()
    def _scores(self, encoded: list[dict[str, list[int]]]) -> Tensor:
        inputs = self._tokenizer.pad(encoded, return_tensors="pt").to(self._model.device)
        logits = self._model(**inputs).logits.float()
        if self.probability:
            one = logits.shape[-1] == 1
            logits = logits.sigmoid() if one else logits.softmax(-1)
        return logits[:, self._label].cpu()

    def _encoded(self, prompt: Any, completion: Any) -> dict[str, list[int]]:
        tokenizer = self._tokenizer
        if tokenizer.chat_template:
            asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
            messages = [*asked, {"role": "assistant", "content": text_of(completion)}]
            text = tokenizer.apply_chat_template(messages, tokenize=False)
            encoded = tokenizer(text, add_special_tokens=False, verbose=False)
        else:
            asked = prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt)
            encoded = tokenizer(asked, text_of(completion), verbose=False)
        return {key: list(encoded[key]) for key in encoded}

    def _tell_truncated(self, count: int, total: int) -> None:
        if count and not self._told:
            self._told.append("truncated")
            logger.warning(
                "reward_model %s: %d of %d texts are longer than %d tokens and lose their "
                "beginning (told once; logged as reward_model/truncated)",
                self.path,
                count,
                total,
                self._room,
            )

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(
                self.path, revision=self.revision, trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            raise ValueError(f"reward_model: no tokenizer can be read at {self.path}") from error
        tokenizer.padding_side = "right"
        if tokenizer.pad_token is None:
            if tokenizer.eos_token is None:
                raise ValueError(f"reward_model: the tokenizer at {self.path} has no padding token")
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        tokenizer = self._tokenizer
        try:
            with _not_partitioned():
                model, info = AutoModelForSequenceClassification.from_pretrained(
                    self.path,
                    revision=self.revision,
                    trust_remote_code=False,
                    dtype=DTYPES[self.dtype],
                    output_loading_info=True,
                )
        except (OSError, ValueError) as error:
            raise ValueError(
                f"reward_model: {self.path} is no sequence classifier of transformers: {error}"
            ) from error
        if info["missing_keys"]:
            raise ValueError(
                f"reward_model: {self.path} has no weights for "
                f"{', '.join(sorted(info['missing_keys']))}, so its scores would be random; give a "
                "model that was trained as a sequence classifier"
            )
        model.config.pad_token_id = tokenizer.pad_token_id
        model.requires_grad_(False)
        return model.eval().to(self._device())

    def _device(self) -> torch.device:
        if self.device != "auto":
            return torch.device(self.device)
        gpu = torch.cuda.is_available()
        return torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")

    @cached_property
    def _label(self) -> int:
        """The column of the logits that is the reward."""
        names: dict[int, str] = self._model.config.id2label
        count = self._model.config.num_labels
        known = ", ".join(f"{i} ({names.get(i, i)})" for i in range(count))
        if self.label is None and count == 1:
            return 0
        for i in range(count):
            if self.label is not None and self.label in (i, names.get(i)):
                return i
        raise ValueError(f"reward_model: label is {self.label!r}; {self.path} has {known}")

    @cached_property
    def _room(self) -> int:
        """Tokens that the model takes."""
        config = self._model.config
        limits = [self._tokenizer.model_max_length, self.max_length]
        positions = getattr(config, "max_position_embeddings", None)
        if positions is not None:  # those of RoBERTa's family begin behind the padding's
            padding = config.pad_token_id if "roberta" in config.model_type else None
            limits.append(positions - (0 if padding is None else padding + 1))
        return min(limit for limit in limits if limit is not None and 0 < limit < UNLIMITED)


@contextlib.contextmanager
def _not_partitioned() -> Iterator[None]:
    """Load a model whole, although the training run partitions its own."""
    reference = deepspeed._hf_deepspeed_config_weak_ref
    deepspeed.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        deepspeed._hf_deepspeed_config_weak_ref = reference
