"""What is to be run: a model, the format of its weights, and the load or the kind of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.data.language_models import LanguageModel
from shoal.policy.sizing.number_formats import BYTES, USUAL

Training = Literal["", "full", "lora", "fsdp"]
USUAL_CONTEXT = 8192


@dataclass(frozen=True, slots=True)
class ModelWorkload:
    model: LanguageModel
    dtype: str = USUAL
    cache_dtype: str = USUAL
    context: int = USUAL_CONTEXT
    """Tokens of a request, prompt and answer together; in training those of a sample."""
    concurrency: int = 1
    """Requests at one time; in training samples on a GPU."""
    training: Training = ""
    assumptions: tuple[str, ...] = ()
    """What was not given, and what was taken instead."""

    @property
    def tokens(self) -> int:
        return self.context * self.concurrency

    @property
    def weight_bytes(self) -> float:
        return self.model.parameters * BYTES[self.dtype]

    @property
    def cache_bytes(self) -> float:
        """Of keys and values of all tokens; training keeps none."""
        return 0.0 if self.training else self.model.cached_values * self.tokens * BYTES[self.cache_dtype]
