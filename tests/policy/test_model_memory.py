"""Whether the model of a pod fits into the memory of its GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from build.manifests import node
from shoal.policy.advice import Obj
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.model_memory import models_in_memory

GPU = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"


def serving(
    *args: str, product: str = "", limits: Obj | None = None, annotations: Obj | None = None, **env: str
) -> Obj:
    container: Obj = {
        "name": "main",
        "image": "registry.example/serve:1",
        "args": list(args),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {"limits": {GPU: 1} if limits is None else limits},
    }
    spec: Obj = {"containers": [container], **({"nodeSelector": {PRODUCT: product}} if product else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": spec,
    }


def advised(obj: Obj, *nodes: Any) -> list[str]:
    return [each.what for each in models_in_memory(obj, ObjectSet((obj, *nodes)))]


LLAMA_8B, LLAMA_70B = "--model=meta-llama/Llama-3.1-8B-Instruct", "--model=meta-llama/Llama-3.1-70B-Instruct"
A100_40, H100 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3"
UNKNOWN = ("hqq", "gguf", "modelopt", "of-our-own")


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (serving(LLAMA_70B, product="Tesla-T4"), "the model has 70.6 billion parameters, about 141.2 GB"),
        (serving(LLAMA_70B, product="Tesla-T4"), "Tesla-T4 has 17 GB, of which 90% can be used"),
        (serving(LLAMA_8B, product="Tesla-T4"), "about 16 GB"),
        (serving(product=A100_40, MODEL_ID="mistralai/Mixtral-8x7B-Instruct-v0.1"), "about 93.4 GB"),
        (serving(LLAMA_8B, limits={}, annotations={"gpu-memory": "4000"}), "gpu-memory has 4 GB"),
        (serving(LLAMA_8B, limits={GPU: 1, "nvidia.com/gpumem": 6000}), "nvidia.com/gpumem has 6 GB"),
        (serving(LLAMA_70B, product=A100_40, limits={GPU: 2}), "has 2 x 43 GB"),
        (serving(LLAMA_8B, product=A100_40, limits={GPU: 1, "nvidia.com/gpumem-percentage": 25}), "has 11 GB"),
        (serving(LLAMA_8B, product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"), "has 5 GB"),
        (serving("serve", "--model", "Qwen/Qwen2.5-72B-Instruct", product="NVIDIA-L4"), "about 145.4 GB"),
        (serving("vllm", "serve", "Qwen/Qwen2.5-72B-Instruct", product="NVIDIA-L4"), "about 145.4 GB"),
        (serving("--model_name_or_path", "org/big-72B", product="NVIDIA-L4"), "about 144 GB"),
        (serving("-m", "/models/big-72B.Q5_K_M.gguf", product="NVIDIA-L4"), "about 45 GB"),
        (serving("--model=openai/gpt-oss-120b", product="NVIDIA-L4"), "about 62 GB"),
        (serving("--model=org/big-72B-quantized.w8a8", product="NVIDIA-L4"), "about 72 GB"),
    ],
)
def test_a_model_that_exceeds_the_memory_is_warned_with_the_figures(obj: Obj, words: str) -> None:
    (what,) = advised(obj)
    assert words in what


@pytest.mark.parametrize(
    "obj",
    [
        serving(LLAMA_8B, product="NVIDIA-A10G"),
        serving(LLAMA_70B, product=A100_40, limits={GPU: 4}),
        serving(LLAMA_70B, "--quantization=awq", product="NVIDIA-L40S"),
        serving(LLAMA_70B, "--cpu-offload-gb=120", product=A100_40),
        serving(LLAMA_70B, "--pipeline-parallel-size=4", product=A100_40),
        serving(LLAMA_70B, product="NVIDIA-Unknown-1000"),
        serving(LLAMA_70B),
        serving("--model=openai/gpt-oss-120b", product=H100),
        serving("--model=deepseek-ai/DeepSeek-R1", product="NVIDIA-H200", limits={GPU: 8}),
        serving("--model=RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w4a16", product=H100),
        serving("--model=nvidia/Llama-3.1-405B-Instruct-FP4", product="NVIDIA-B200", limits={GPU: 4}),
        serving("-m", "/models/llama-3.1-70b-instruct.Q5_K_M.gguf", product=H100),
        serving("train.py", "--dataset", "cerebras/SlimPajama-627B", "--model", "gpt2", product=H100),
        serving("train.py", "--dataset", "cerebras/SlimPajama-627B", product=H100),
        serving("cp", "/cache/big-72B", "/models", product="Tesla-T4"),
        *(serving("--model=org/big-72B", f"--quantization={name}", product="NVIDIA-L40S") for name in UNKNOWN),
        serving("--model=registry/private-model", product="Tesla-T4"),
        serving(product="Tesla-V100-PCIE-32GB", MODEL_ID="meta-llama/Llama-3.1-8B"),
        serving(product="Tesla-T4", MODELS="Llama-3.1-70B"),
    ],
)
def test_what_fits_or_is_not_known_is_not_warned(obj: Obj) -> None:
    assert advised(obj) == []


def test_the_nodes_that_the_pod_selects_count_where_no_product_is_named() -> None:
    small, large = (
        node("small", 1, labels={PRODUCT: "Tesla-T4", "pool": "a"}),
        node("large", 1, labels={PRODUCT: "NVIDIA-H100-80GB-HBM3", "pool": "b"}),
    )
    obj = serving(LLAMA_8B)
    assert advised(obj, small)
    assert advised(obj, small, large) == [], "it may run on the large one"
    obj["spec"]["nodeSelector"] = {"pool": "a"}
    assert advised(obj, small, large)


def test_pods_of_another_object_are_checked_with_that_object() -> None:
    obj = serving(LLAMA_70B, product="Tesla-T4")
    obj["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "controller": True}]
    assert advised(obj) == []
