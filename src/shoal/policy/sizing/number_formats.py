"""The formats in which parameters are stored: how many bytes one takes, and which GPUs compute with it."""

from __future__ import annotations

import re
from typing import Final

from shoal.data.gpus import Model

BYTES: Final = {
    **dict.fromkeys(("fp32", "float32", "tf32"), 4.0),
    **dict.fromkeys(("fp16", "bf16", "float16", "bfloat16", "half"), 2.0),
    **dict.fromkeys(("int8", "fp8", "8bit", "float8_e4m3fn"), 1.0),
    **dict.fromkeys(("int4", "fp4", "nf4", "nvfp4", "4bit", "awq", "gptq", "q4"), 0.5),
    # Blocks of 32 numbers have a scale of a byte.
    "mxfp4": 0.5 + 1 / 32,
}
USUAL: Final = "bf16"
_BF16, _FP8 = frozenset({"bf16", "bfloat16"}), frozenset({"fp8", "float8_e4m3fn"})
_FP4 = frozenset({"fp4", "nvfp4", "mxfp4"})
_FIRST_CAPABILITIES: Final = ((_BF16, (8, 0)), (_FP8, (8, 9)), (_FP4, (10, 0)))
_FIRST_TO_EXPAND: Final = (8, 0)
_SAME_SIZE: Final = {**dict.fromkeys(_BF16, "fp16"), **dict.fromkeys(_FP8, "int8"), **dict.fromkeys(_FP4, "int4")}
_WORD: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_BITS: Final = re.compile(
    r"(?:(?:mx|nv)?fp|int|nf|i?q)([2-8])|([2-8])bit|w([2-8])a[0-9]{1,2}",
    re.ASCII,
)
_WITHOUT_BITS: Final = {"awq": 0.5, "gptq": 0.5, "bitsandbytes": 0.5, "bnb": 0.5, "eetq": 1.0}
_UNKNOWN: Final = ("quant", "gguf", "ggml", "hqq", "exl2", "exl3", "aqlm", "modelopt", "torchao", "compressed")


def bytes_of(name: str) -> float | None:
    return BYTES.get(name.lower())


def bytes_in_name(text: str, native: str = USUAL) -> float | None:
    """The fewest that a text about a model says. If it says nothing, those of the native format, of which servers halve
    32 bits. None where a word about quantization is not known."""
    words = _WORD.findall(text.lower())
    bits = [int(next(filter(None, found.groups()))) for found in map(_BITS.fullmatch, words) if found]
    said = [each / 8 for each in bits] + [_WITHOUT_BITS[word] for word in words if word in _WITHOUT_BITS]
    if said:
        return min(said)
    return None if any(word.startswith(_UNKNOWN) for word in words) else min(BYTES[native], BYTES[USUAL])


def is_computed_by(name: str, gpu: Model, *, is_training: bool = False) -> bool:
    """Whether the GPU runs a model with such weights. Training needs the format in hardware: bf16 since compute
    capability 8.0, FP8 since 8.9, FP4 since 10.0. Servers expand FP8 and FP4 when they read them, since 8.0. Integers
    are expanded by all GPUs."""
    lower = name.lower()
    if gpu.vendor == "nvidia":
        major, _, minor = gpu.compute_capability.partition(".")
        has = (int(major), int(minor or 0))
        firsts = [first for formats, first in _FIRST_CAPABILITIES if lower in formats]
        return all(has >= (first if is_training else min(first, _FIRST_TO_EXPAND)) for first in firsts)
    rates = ((_BF16, gpu.fp16_tflops), (_FP8, gpu.fp8_tflops), (_FP4, gpu.fp4_tflops))
    is_matrix_gpu = gpu.compute_capability.startswith("gfx9")
    return all(rate is not None and is_matrix_gpu for formats, rate in rates if lower in formats)


def of_same_size(name: str) -> str:
    """The format of the same size that all GPUs compute with."""
    return _SAME_SIZE.get(name.lower(), name)
