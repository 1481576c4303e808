"""Language models: how many parameters they have, and what a token occupies in their cache."""

from __future__ import annotations

from functools import cache

from shoal.data.facts import Fact, load, require, require_unique

FILE = "language_models.json"
_SEPARATORS = str.maketrans("", "", "-_. ")


class LanguageModel(Fact, frozen=True):
    name: str
    parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    dtype: str
    aliases: tuple[str, ...] = ()
    active_parameters: int | None = None
    latent_values: int | None = None
    is_encoder: bool = False

    @property
    def used_parameters(self) -> int:
        """Those that one token passes through: fewer than all in a mixture of experts."""
        return self.active_parameters or self.parameters

    @property
    def cached_values(self) -> int:
        """What one token occupies in the cache of keys and values, in numbers."""
        if self.is_encoder:
            return 0
        if self.latent_values is not None:
            return self.layers * self.latent_values
        return 2 * self.layers * self.kv_heads * self.head_dim


class _ModelFile(Fact, frozen=True):
    about: tuple[str, ...]
    sources: dict[str, str]
    models: tuple[LanguageModel, ...]


def language_models() -> tuple[LanguageModel, ...]:
    return _models()


def find_language_model(name: str) -> LanguageModel | None:
    """By name or alias; a publisher in front, capital letters, dots and dashes make no difference."""
    wanted = _key(name)
    return next((model for model in _models() if wanted in {_key(each) for each in (model.name, *model.aliases)}), None)


def _key(name: str) -> str:
    return name.rsplit("/", 1)[-1].lower().translate(_SEPARATORS)


@cache
def _models() -> tuple[LanguageModel, ...]:
    found = load(FILE, _ModelFile).models
    require_unique((_key(each) for model in found for each in (model.name, *model.aliases)), FILE, "name")
    for model in found:
        require(model.heads % model.kv_heads == 0, FILE, model.name, "the heads are divided evenly among the kv_heads")
        require(model.used_parameters <= model.parameters, FILE, model.name, "more parameters in use than there are")
    return found
