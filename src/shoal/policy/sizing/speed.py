"""How many tokens a second a group of GPUs produces: a band between two efficiencies, with its formula.

Serving: each step reads the weights in use and the cache of all requests once, and computes 2 operations for each
parameter in use and request. A step takes the longer of the two; it yields a token for each request. Training computes
6 operations for each parameter and token, and 2 more where activations are recomputed (4 and 2 for adapters: there the
weights have no gradients). The stages of a pipeline work at one time only on different requests. Real servers reach
between `LOW` and `HIGH` of what the hardware could do.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.data.gpus import Model
from shoal.policy.sizing.number_formats import BYTES
from shoal.policy.sizing.workload import ModelWorkload

LOW, HIGH = 0.35, 0.75
_TRAINING_LOW, _TRAINING_HIGH = 0.25, 0.5
_OPERATIONS = {"full": 8, "fsdp": 8, "lora": 6}
SERVING_FORMULA = (
    "requests / max((weights in use + cache) / bandwidth, 2 x parameters in use x requests / operations), times "
    f"{LOW:g} to {HIGH:g}"
)
TRAINING_FORMULA = (
    f"operations / (8 x parameters in use; 6 for adapters), times {_TRAINING_LOW:g} to {_TRAINING_HIGH:g}"
)


@dataclass(frozen=True, slots=True)
class TokenRate:
    """Tokens a second, at the low and at the high efficiency."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


def token_rate(
    workload: ModelWorkload, gpu: Model, tensor: int = 1, pipeline: int = 1, share: float = 1.0
) -> TokenRate | None:
    """`share`: the part of the GPU that an instance has. None where the rates of the GPU are unknown."""
    operations = _operations_of(gpu, workload.dtype)
    if operations is None:
        return None
    stages = pipeline if workload.training else min(pipeline, workload.concurrency)
    at_work = tensor * stages * share
    operations *= at_work
    used = workload.model.used_parameters
    if workload.training:
        rate = operations / (_OPERATIONS[workload.training] * used)
        return TokenRate(rate * _TRAINING_LOW, rate * _TRAINING_HIGH)
    read = used * BYTES[workload.dtype] + workload.cache_bytes
    step_s = max(read / (gpu.bandwidth_gb_s * 1e9 * at_work), 2 * used * workload.concurrency / operations)
    rate = workload.concurrency / step_s
    return TokenRate(rate * LOW, rate * HIGH)


def _operations_of(gpu: Model, dtype: str) -> float | None:
    """Weights of fewer bits than the GPU computes with are expanded first."""
    teraflops = gpu.fp8_tflops if dtype in {"fp8", "int8"} and gpu.fp8_tflops else gpu.fp16_tflops
    return teraflops * 1e12 if teraflops else None
