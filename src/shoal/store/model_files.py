"""Reads a language model from its folder on disk: `config.json`, and the headers of its safetensors files.

Guarantees: no weights are read; each file is read up to a bound; a header that lies about its length is an error of the
user and no crash. The parameters are counted from the headers; without such files they follow from the shapes that
`config.json` names, which holds for decoders with gated linear layers.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import msgspec

from shoal.data.language_models import LanguageModel
from shoal.units.errors import UserError, Where

CONFIG: Final = "config.json"
_MOST_CONFIG_BYTES: Final = 1 << 20
_MOST_HEADER_BYTES: Final = 100_000_000
"""The bound of the format itself."""
_MOST_FILES: Final = 4096
_MOST_COUNT: Final = 10**9
_LENGTH_BYTES: Final = 8
_FORMATS: Final = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_BYTE: Final = 8
_QUANTIZED_BITS: Final = {4: "int4", _BYTE: "int8"}
_MOST_DIMENSIONS: Final = 16
_MOST_PARAMETERS: Final = 10**15
_WHOLE_MODEL: Final = "consolidated"
"""What the name of a file begins with that has the same weights as the others beside it."""


class _QuantizedWeights(msgspec.Struct, frozen=True):
    num_bits: int | None = None
    type: str = ""


class _QuantizedGroup(msgspec.Struct, frozen=True):
    weights: _QuantizedWeights | None = None


class _Quantization(msgspec.Struct, frozen=True):
    bits: int | None = None
    quant_method: str = ""
    quant_algo: str = ""
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    config_groups: dict[str, _QuantizedGroup] = {}

    def dtype(self) -> str:
        """Of the weights; empty if the method does not say."""
        names = f"{self.quant_method} {self.quant_algo}".lower()
        weights = next((group.weights for group in self.config_groups.values() if group.weights is not None), None)
        bits = self.bits if weights is None or weights.num_bits is None else weights.num_bits
        if "fp8" in names or (weights is not None and weights.type == "float" and bits == _BYTE):
            return "fp8"
        if self.load_in_4bit or "fp4" in names:
            return "int4"
        return "int8" if self.load_in_8bit else _QUANTIZED_BITS.get(bits or 0, "")


class _Config(msgspec.Struct, frozen=True):
    """The fields that transformers writes, of which models use a part."""

    num_hidden_layers: int | None = None
    n_layer: int | None = None
    hidden_size: int | None = None
    n_embd: int | None = None
    num_attention_heads: int | None = None
    n_head: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    intermediate_size: int | None = None
    num_local_experts: int | None = None
    num_experts_per_tok: int | None = None
    max_position_embeddings: int | None = None
    n_positions: int | None = None
    torch_dtype: str | None = None
    dtype: str | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    tie_word_embeddings: bool = False
    model_type: str = ""
    quantization_config: _Quantization | None = None
    text_config: _Config | None = None


def read_language_model(path: Path) -> LanguageModel:
    """From a folder, or from a `config.json`. Raises UserError."""
    file = path / CONFIG if path.is_dir() else path
    config = _config(file)
    layers = _needed(file, "num_hidden_layers", config.num_hidden_layers, config.n_layer)
    hidden = _needed(file, "hidden_size", config.hidden_size, config.n_embd)
    heads = _needed(file, "num_attention_heads", config.num_attention_heads, config.n_head)
    kv_heads = _positive(file, "num_key_value_heads", config.num_key_value_heads or heads)
    head_dim = _positive(file, "head_dim", config.head_dim or max(1, hidden // heads))
    vocabulary = _needed(file, "vocab_size", config.vocab_size)
    if heads % kv_heads:
        raise UserError(
            f"{heads} attention heads cannot be divided among {kv_heads} key-value heads",
            where=Where(file=str(file), path="num_key_value_heads"),
        )
    latent = config.kv_lora_rank + (config.qk_rope_head_dim or 0) if config.kv_lora_rank else None
    shapes = _Shapes(layers, hidden, heads, kv_heads, head_dim, vocabulary)
    # Quantized weights are packed, several in one element.
    is_packed = config.quantization_config is not None and config.intermediate_size is not None
    counted = 0 if is_packed else _counted(file.parent)
    parameters = counted or shapes.parameters(file, config)
    active = shapes.parameters(file, config, config.num_experts_per_tok) if config.num_local_experts else None
    return LanguageModel(
        name=file.resolve().parent.name or file.name,
        parameters=parameters,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=vocabulary,
        context=config.max_position_embeddings or config.n_positions or 0,
        dtype=_dtype(config),
        active_parameters=min(active, parameters) if active else None,
        latent_values=latent,
        is_encoder=config.model_type in {"bert", "roberta", "xlm-roberta", "distilbert"},
    )


class _Shapes(msgspec.Struct, frozen=True):
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    def parameters(self, file: Path, config: _Config, experts_in_use: int | None = None) -> int:
        inner = _needed(file, "intermediate_size", config.intermediate_size)
        experts = config.num_local_experts or 1
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        router = self.hidden * experts if experts > 1 else 0
        layer = attention + 3 * self.hidden * inner * (experts_in_use or experts) + router + 2 * self.hidden
        embeddings = self.vocabulary * self.hidden * (1 if config.tie_word_embeddings else 2)
        return self.layers * layer + embeddings + self.hidden


def _config(file: Path) -> _Config:
    where = Where(file=str(file))
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_CONFIG_BYTES + 1)
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", where=where, fix=f"name a folder that contains {CONFIG}"
        ) from error
    if len(data) > _MOST_CONFIG_BYTES:
        raise UserError("is larger than 1 MiB and no configuration of a model", where=where)
    try:
        found = msgspec.json.decode(data, type=_Config)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(str(error), where=where) from error
    return found if found.text_config is None else found.text_config


def _needed(file: Path, name: str, *values: int | None) -> int:
    value = next((value for value in values if value is not None), None)
    if value is None:
        raise UserError(f"{name} is missing", where=Where(file=str(file)), fix="give the size with --params")
    return _positive(file, name, value)


def _positive(file: Path, name: str, value: int) -> int:
    if not 0 < value <= _MOST_COUNT:
        raise UserError(f"{value} is not between 1 and {_MOST_COUNT}", where=Where(file=str(file), path=name))
    return value


def _dtype(config: _Config) -> str:
    quantized = "" if config.quantization_config is None else config.quantization_config.dtype()
    if quantized:
        return quantized
    return _FORMATS.get(config.torch_dtype or config.dtype or "", "bf16")


def _counted(folder: Path) -> int:
    """The parameters of the safetensors files of the folder; 0 if there are none."""
    files = sorted(folder.glob("*.safetensors"))[:_MOST_FILES]
    parts = [file for file in files if not file.name.startswith(_WHOLE_MODEL)]
    return sum(_parameters(file) for file in parts or files)


def _parameters(file: Path) -> int:
    where = Where(file=str(file))
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
            if not 0 < length <= min(_MOST_HEADER_BYTES, file.stat().st_size - _LENGTH_BYTES):
                raise UserError("the length of the header is not that of a safetensors file", where=where)
            header: dict[str, Any] = msgspec.json.decode(stream.read(length), type=dict[str, Any])
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=where) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"the header is not JSON: {error}", where=where) from error
    return sum(_elements(tensor, where) for name, tensor in header.items() if name != "__metadata__")


def _elements(tensor: Any, where: Where) -> int:
    shape = tensor.get("shape") if isinstance(tensor, dict) else None
    if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise UserError("a tensor of the header has no shape", where=where)
    if len(shape) > _MOST_DIMENSIONS or (count := math.prod(shape)) > _MOST_PARAMETERS:
        raise UserError("a tensor of the header has an impossible shape", where=where)
    return count
