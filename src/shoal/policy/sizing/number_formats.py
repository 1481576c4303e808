"""The formats in which parameters are stored, and how many bytes one takes."""

from __future__ import annotations

from typing import Final

BYTES: Final = {
    **dict.fromkeys(("fp32", "float32", "tf32"), 4.0),
    **dict.fromkeys(("fp16", "bf16", "float16", "bfloat16", "half"), 2.0),
    **dict.fromkeys(("int8", "fp8", "8bit", "float8_e4m3fn"), 1.0),
    **dict.fromkeys(("int4", "fp4", "nf4", "4bit", "awq", "gptq", "q4"), 0.5),
}
USUAL: Final = "bf16"
_IN_NAMES: Final = ("int4", "4bit", "awq", "gptq", "q4", "int8", "8bit", "fp8")


def bytes_of(name: str) -> float | None:
    return BYTES.get(name.lower())


def bytes_in_name(text: str) -> float:
    """Of a model whose name says how it is quantized; 2 if it does not."""
    lower = text.lower()
    return next((BYTES[mark] for mark in _IN_NAMES if mark in lower), BYTES[USUAL])
