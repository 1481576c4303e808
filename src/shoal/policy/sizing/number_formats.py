"""The formats in which parameters are stored: how many bytes one takes, and which GPUs compute with it."""

from __future__ import annotations

from typing import Final

from shoal.data.gpus import Model

BYTES: Final = {
    **dict.fromkeys(("fp32", "float32", "tf32"), 4.0),
    **dict.fromkeys(("fp16", "bf16", "float16", "bfloat16", "half"), 2.0),
    **dict.fromkeys(("int8", "fp8", "8bit", "float8_e4m3fn"), 1.0),
    **dict.fromkeys(("int4", "fp4", "nf4", "4bit", "awq", "gptq", "q4"), 0.5),
}
USUAL: Final = "bf16"
_BF16, _FP8, _FP4 = frozenset({"bf16", "bfloat16"}), frozenset({"fp8", "float8_e4m3fn"}), frozenset({"fp4"})
_FIRST_CAPABILITIES: Final = ((_BF16, (8, 0)), (_FP8, (8, 9)), (_FP4, (10, 0)))
_SAME_SIZE: Final = {**dict.fromkeys(_BF16, "fp16"), **dict.fromkeys(_FP8, "int8"), **dict.fromkeys(_FP4, "int4")}
_IN_NAMES: Final = ("int4", "4bit", "awq", "gptq", "q4", "int8", "8bit", "fp8")


def bytes_of(name: str) -> float | None:
    return BYTES.get(name.lower())


def bytes_in_name(text: str) -> float:
    """Of a model whose name says how it is quantized; 2 if it does not."""
    lower = text.lower()
    return next((BYTES[mark] for mark in _IN_NAMES if mark in lower), BYTES[USUAL])


def is_computed_by(name: str, gpu: Model) -> bool:
    """Whether the GPU has the format in hardware: bf16 since compute capability 8.0, FP8 since 8.9, FP4 since 10.0.
    Integers are expanded when they are read, by all GPUs."""
    lower = name.lower()
    if gpu.vendor == "nvidia":
        major, _, minor = gpu.compute_capability.partition(".")
        has = (int(major), int(minor or 0))
        return all(has >= first for formats, first in _FIRST_CAPABILITIES if lower in formats)
    rates = ((_BF16, gpu.fp16_tflops), (_FP8, gpu.fp8_tflops), (_FP4, gpu.fp4_tflops))
    is_matrix_gpu = gpu.compute_capability.startswith("gfx9")
    return all(rate is not None and is_matrix_gpu for formats, rate in rates if lower in formats)


def of_same_size(name: str) -> str:
    """The format of the same size that all GPUs compute with."""
    return _SAME_SIZE.get(name.lower(), name)
