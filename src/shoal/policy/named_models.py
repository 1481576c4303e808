"""Reads which language model a container loads, from its command, its variables or its storage.

The model is a well-known one, or its name says how many parameters it has. Words about quantization anywhere beside it
make it smaller. A name that says neither is no model, and a quantization may be unknown: neither is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from shoal.data.language_models import find_language_model
from shoal.policy.advice import Obj
from shoal.policy.fields import maps
from shoal.policy.pod_templates import command_words
from shoal.policy.sizing.number_formats import USUAL, bytes_in_name

_SIZE = re.compile(r"(?<![A-Za-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,2})?)[bB](?![A-Za-z0-9])")
_MODEL_VARIABLE = re.compile(r"(?:[A-Z0-9]+_){0,4}MODEL(?:_(?:ID|NAME|PATH|REPO))?")
_PART_OF_CPU = ("offload", "device=cpu", "--device cpu")
_OPTIONS = frozenset(
    {
        *("model", "model-id", "model-name", "model-path", "model-repo", "model-name-or-path", "base-model"),
        *("pretrained-model-name-or-path", "m", "hf", "hf-repo"),
    }
)
_SERVERS = ("vllm", "sglang", "lmdeploy", "trtllm-serve")
_BEFORE_MODEL = ("serve", "api_server", "trtllm-serve")


class NamedModel(NamedTuple):
    """A model with the size of its weights."""

    billions: str
    weights_gb: float
    name: str
    is_offloaded: bool
    """Whether a part of the weights may stay outside the GPU."""

    def __str__(self) -> str:
        return f"the model has {self.billions} billion parameters, about {self.weights_gb:g} GB"


def named_model(container: Obj) -> NamedModel | None:
    """The model that the container loads, if that is certain."""
    words = command_words(container)
    everything = " ".join((*words, *_variables(container)))
    for word in _candidates(container, words):
        billions, native = _billions(word)
        if billions is not None:
            size = bytes_in_name(everything, native)
            if size is None:
                return None
            offloaded = any(mark in everything.lower() for mark in _PART_OF_CPU)
            return NamedModel(f"{billions:g}", round(billions * size, 1), word, offloaded)
    return None


def _candidates(container: Obj, words: list[str]) -> Iterator[str]:
    is_server = any(name in word for word in (str(container.get("image")), *words) for name in _SERVERS)
    for before, word in zip(("", *words), words, strict=False):
        option, _, given = word.partition("=")
        if word.startswith("-"):
            if given and _is_model_option(option):
                yield given
        elif _is_model_option(before) or (is_server and before in _BEFORE_MODEL):
            yield word
    for each in maps(container.get("env")):
        name, value = each.get("name"), each.get("value")
        if isinstance(name, str) and isinstance(value, str) and _MODEL_VARIABLE.fullmatch(name):
            yield value
    storage = container.get("storageUri")
    if isinstance(storage, str):
        yield storage


def _is_model_option(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-").replace("_", "-") in _OPTIONS


def _variables(container: Obj) -> Iterator[str]:
    return (each["value"] for each in maps(container.get("env")) if isinstance(each.get("value"), str))


def _billions(word: str) -> tuple[float | None, str]:
    """With the format of the published weights."""
    known = find_language_model(word.partition(":")[0] if "://" not in word else word)
    if known is not None:
        return round(known.parameters / 1e9, 1), known.dtype
    found = _SIZE.search(word)
    return float(found[1]) if found is not None else None, USUAL
