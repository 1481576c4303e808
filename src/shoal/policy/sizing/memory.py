"""How much memory each GPU of a group needs, part by part.

The formulas, for a group of `tensor` x `pipeline` GPUs (one GPU: 1 x 1):

- weights: parameters x bytes of their format, divided among the GPUs.
- cache: 2 x layers x key-value heads x size of a head x bytes x tokens, divided likewise, but a key-value head is held
  whole: beyond as many GPUs as there are key-value heads each further one keeps a copy. A compressed cache (one vector
  per layer and token) is copied to each GPU of a tensor group.
- training, mixed precision with Adam: 2 bytes a parameter for its gradient and 12 for the full-precision copy and the
  two moments. `full` keeps all of it on each GPU, `fsdp` divides weights, gradients and these states; `lora` keeps them
  for the adapters only, which are taken as one hundredth of the parameters.
- activations: serving holds the hidden values of the tokens in one step, four times over; training with recomputation
  holds 2 bytes x hidden x tokens for each layer, and 34 x hidden x tokens for the layer at work.
- runtime: the CUDA context and the libraries, for each process.
- margin: what the allocator loses to fragmentation, a tenth of the memory of the GPU.

Rejected: fitted constants per framework. They hold for one release; these parts can be checked by hand.
The result is an estimate: compare `MARGIN_OF_ERROR`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from shoal.policy.sizing.number_formats import BYTES
from shoal.policy.sizing.workload import ModelWorkload

MARGIN_OF_ERROR = 0.15
FRAGMENTATION = 0.10
RUNTIME_BYTES = 0.7e9
ADAPTER_SHARE = 0.01
_GRADIENT_BYTES, _STATE_BYTES = 2, 12
_STEP_TOKENS = 2048
"""Prompt tokens that a server computes in one step, by the default of vLLM for chunked prompts."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one GPU."""

    weights: float
    cache: float
    gradients: float
    optimizer: float
    activations: float
    runtime: float = RUNTIME_BYTES

    @property
    def needed(self) -> float:
        return float(sum(getattr(self, field.name) for field in fields(self)))

    def is_within(self, memory_bytes: float) -> bool:
        return self.needed <= memory_bytes * (1 - FRAGMENTATION)


def memory_of(workload: ModelWorkload, tensor: int = 1, pipeline: int = 1) -> Memory:
    model, gpus = workload.model, tensor * pipeline
    is_divided = workload.training != "full"
    parts = gpus if is_divided else 1
    trained = model.parameters * (ADAPTER_SHARE if workload.training == "lora" else 1.0) if workload.training else 0.0
    return Memory(
        weights=workload.weight_bytes / parts,
        cache=workload.cache_bytes / (pipeline * _cache_parts(workload, tensor)),
        gradients=trained * _GRADIENT_BYTES / parts,
        optimizer=trained * _STATE_BYTES / parts,
        activations=_activations(workload),
    )


def _cache_parts(workload: ModelWorkload, tensor: int) -> int:
    return 1 if workload.model.latent_values is not None else min(tensor, workload.model.kv_heads)


def _activations(workload: ModelWorkload) -> float:
    hidden, tokens = workload.model.hidden, workload.tokens
    if workload.training:
        return hidden * tokens * (2.0 * workload.model.layers + 34)
    return 4 * hidden * min(tokens, _STEP_TOKENS) * max(2.0, BYTES[workload.dtype])
