"""Sizes of models: golden figures, and properties of the estimate."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.gpus import Model, find_model, models
from shoal.data.language_models import LanguageModel, find_language_model, language_models
from shoal.policy.sizing.fits import Fit, fits, why_not
from shoal.policy.sizing.memory import FRAGMENTATION, memory_of
from shoal.policy.sizing.sharing_advice import sharing_advice
from shoal.policy.sizing.speed import token_rate
from shoal.policy.sizing.workload import ModelWorkload

A100_40, A100_80, H100 = "A100-SXM4-40GB", "A100-SXM4-80GB", "H100-SXM5-80GB"


def model(name: str) -> LanguageModel:
    found = find_language_model(name)
    assert found is not None
    return found


def gpu(name: str) -> Model:
    found = find_model(name)
    assert found is not None
    return found


def whole(workload: ModelWorkload, name: str) -> Fit | None:
    return next((fit for fit in fits(workload, [gpu(name)]) if not fit.profile), None)


def instance(workload: ModelWorkload, name: str) -> str:
    return next((fit.profile for fit in fits(workload, [gpu(name)]) if fit.profile), "")


@pytest.mark.parametrize(
    ("name", "dtype", "weights_gb", "a100s"),
    [
        ("Mistral-7B", "fp16", 14.5, 1),
        ("Llama-13B", "fp16", 26.0, 1),
        ("Llama-70B", "fp16", 138.0, 4),
        ("Llama-70B", "int8", 69.0, 2),
        ("Llama-70B", "int4", 34.5, 1),
        ("Mixtral-8x7B", "fp16", 93.4, 4),
    ],
)
def test_the_published_models_need_these_weights_and_these_gpus(
    name: str, dtype: str, weights_gb: float, a100s: int
) -> None:
    workload = ModelWorkload(model(name), dtype, context=4096)
    assert workload.weight_bytes / 1e9 == pytest.approx(weights_gb, abs=0.1)
    fit = whole(workload, A100_40)
    assert fit is not None
    assert fit.gpus == a100s


def test_the_smallest_instance_that_holds_the_model_alone_is_named() -> None:
    mistral = ModelWorkload(model("Mistral-7B"), "fp16")
    assert (instance(mistral, A100_40), instance(mistral, A100_80)) == ("3g.20gb", "1g.20gb")
    assert instance(ModelWorkload(model("Llama-70B"), "fp16"), A100_80) == "", "instances are never added up"


def test_the_cache_is_two_values_for_each_layer_head_and_token() -> None:
    workload = ModelWorkload(model("Llama-3.1-70B"), context=1000, concurrency=3)
    assert workload.cache_bytes == 2 * 80 * 8 * 128 * 2 * 3000
    assert ModelWorkload(model("BERT-large"), "fp32").cache_bytes == 0
    latent = ModelWorkload(model("DeepSeek-V3"), "fp8", context=1000)
    assert latent.cache_bytes == 61 * 576 * 2 * 1000


def test_a_tensor_group_divides_the_heads_and_keeps_a_head_of_the_cache_whole() -> None:
    few_heads = ModelWorkload(model("Qwen2.5-7B"), context=100_000, concurrency=4)
    assert memory_of(few_heads, 8).cache == memory_of(few_heads, 4).cache == few_heads.cache_bytes / 4
    assert {fit.tensor for fit in fits(few_heads, models()) if not fit.profile} <= {1, 2, 4}, "28 heads"


def test_training_keeps_gradients_and_optimizer_states() -> None:
    llama = model("Llama-2-7B")
    full = memory_of(ModelWorkload(llama, context=512, training="full"))
    assert full.weights + full.gradients + full.optimizer == 16 * llama.parameters
    lora = memory_of(ModelWorkload(llama, context=512, training="lora"))
    assert lora.gradients + lora.optimizer == pytest.approx(0.14 * llama.parameters)
    sharded = memory_of(ModelWorkload(llama, context=512, training="fsdp"), 8)
    assert sharded.optimizer * 8 == full.optimizer
    assert whole(ModelWorkload(llama, context=512, training="full"), A100_80) is None, "nothing divides it"
    assert (fit := whole(ModelWorkload(llama, context=512, training="fsdp"), A100_80)) is not None
    assert fit.gpus == 2


def test_a_single_request_reads_the_weights_once_for_each_token() -> None:
    workload = ModelWorkload(model("Llama-2-7B"), "fp16", context=1)
    rate = token_rate(workload, gpu(A100_80))
    assert rate is not None
    steps = 2039e9 / (workload.weight_bytes + workload.cache_bytes)
    assert rate.low == pytest.approx(0.35 * steps)
    assert rate.high == pytest.approx(0.75 * steps)


def test_the_stages_of_a_pipeline_do_not_speed_up_a_single_request() -> None:
    one = ModelWorkload(model("Llama-3.1-405B"))
    assert token_rate(one, gpu(H100), 8, 2) == token_rate(one, gpu(H100), 8, 1)
    many = replace(one, concurrency=2)
    two_stages, one_stage = token_rate(many, gpu(H100), 8, 2), token_rate(many, gpu(H100), 8, 1)
    assert two_stages is not None
    assert one_stage is not None
    assert two_stages.low == pytest.approx(2 * one_stage.low)


def test_the_cost_of_a_million_tokens_follows_from_the_price_of_an_hour() -> None:
    fit = whole(ModelWorkload(model("Mistral-7B")), A100_80)
    assert fit is not None
    assert fit.rate is not None
    assert fit.usd_per_month == fit.usd_per_hour * 730
    assert fit.usd_per_million_tokens is not None
    tokens = Decimal(fit.rate.middle) * 3600
    assert fit.usd_per_million_tokens * tokens / 10**6 == pytest.approx(fit.usd_per_hour)


def test_a_gpu_without_published_rates_still_tells_whether_it_fits() -> None:
    fit = whole(ModelWorkload(model("Mistral-7B")), "RTXPRO4500-BSE")
    assert fit is not None
    assert fit.rate is None
    assert fit.usd_per_million_tokens is None


def test_sharing_is_advised_where_at_most_half_of_a_gpu_is_needed() -> None:
    small = ModelWorkload(model("Llama-3.2-1B"))
    lines = list(sharing_advice(fits(small, [gpu(A100_80)])))
    assert [line.split(":")[0] for line in lines] == [
        "sharing in production, or by several teams",
        "sharing by one team, for throughput",
        "sharing for development",
        "sharing for the highest density",
    ]
    assert "time-slicing of 1g.10gb instances, 14 pods" in lines[3]
    assert "1g.10gb" in lines[0]
    assert len(list(sharing_advice(fits(small, [gpu("L4")])))) == 3, "no instances, no density of instances"
    assert "has no MIG instance" in next(iter(sharing_advice(fits(small, [gpu("L4")]))))
    assert not list(sharing_advice(fits(ModelWorkload(model("Llama-70B"), "int4"), [gpu(A100_40)])))


WORKLOADS = st.builds(
    ModelWorkload,
    st.sampled_from(language_models()),
    st.sampled_from(["fp32", "fp16", "bf16", "fp8", "int8", "int4"]),
    context=st.integers(1, 200_000),
    concurrency=st.integers(1, 256),
    training=st.sampled_from(["", "full", "lora", "fsdp"]),
)


@given(WORKLOADS)
def test_each_fit_leaves_the_margin_and_the_least_expensive_comes_first(workload: ModelWorkload) -> None:
    found = fits(workload, models())
    assert [fit.usd_per_hour for fit in found] == sorted(fit.usd_per_hour for fit in found)
    for fit in found:
        assert fit.memory.needed <= fit.memory_bytes * (1 - FRAGMENTATION)
        assert fit.gpus == 1 or not fit.profile
        if fit.gpus > 1:
            smaller = memory_of(workload, fit.tensor // 2 or 1, fit.pipeline) if fit.pipeline == 1 else None
            divides = workload.training or workload.model.heads % (fit.tensor // 2 or 1) == 0
            assert smaller is None or not divides or not smaller.is_within(fit.memory_bytes)


@given(WORKLOADS, st.integers(1, 4))
def test_more_tokens_never_need_less_memory(workload: ModelWorkload, times: int) -> None:
    more = replace(workload, context=workload.context * times)
    assert memory_of(more).needed >= memory_of(workload).needed
    assert memory_of(replace(workload, concurrency=workload.concurrency * times)).needed >= memory_of(workload).needed


@pytest.mark.parametrize(
    ("dtype", "name", "is_held"),
    [
        ("fp8", "T4", False),
        ("fp8", A100_80, True),
        ("fp8", "V100-SXM2-32GB", False),
        ("fp8", "L4", True),
        ("fp4", H100, True),
        ("mxfp4", H100, True),
        ("fp4", "T4", False),
        ("fp8", "RTXPRO4500-BSE", True),
        ("bf16", "T4", False),
        ("bf16", "T4G", False),
        ("bf16", "V100-SXM2-32GB", False),
        ("bf16", "A10", True),
        ("int8", "T4", True),
        ("fp16", "T4G", True),
        ("fp8", "MI300X", True),
        ("bf16", "RadeonProV520", False),
    ],
)
def test_a_gpu_holds_only_formats_that_it_computes_with(dtype: str, name: str, is_held: bool) -> None:
    workload = ModelWorkload(model("Llama-3.2-1B"), dtype, context=512)
    assert bool(fits(workload, [gpu(name)])) is is_held
    if not is_held:
        assert why_not(workload, gpu(name)).startswith(f"it does not compute in {dtype}; --dtype ")


@pytest.mark.parametrize(
    ("dtype", "name", "is_held"), [("fp8", A100_80, False), ("fp8", H100, True), ("fp4", H100, False)]
)
def test_training_needs_the_format_in_hardware(dtype: str, name: str, is_held: bool) -> None:
    workload = ModelWorkload(model("Llama-3.2-1B"), dtype, context=512, training="full")
    assert bool(fits(workload, [gpu(name)])) is is_held
    assert why_not(workload, gpu(name)).startswith("it does not compute in") is not is_held


def test_weights_that_are_expanded_are_computed_at_the_rate_of_16_bits() -> None:
    many = ModelWorkload(model("Llama-3.2-1B"), "fp8", context=16, concurrency=10_000)
    assert token_rate(many, gpu(A100_80)) == token_rate(replace(many, dtype="fp16"), gpu(A100_80))


def test_a_tensor_group_is_not_larger_than_a_machine() -> None:
    large = ModelWorkload(model("DeepSeek-V3"), "fp8")
    assert not [fit.gpu.name for fit in fits(large, models()) if fit.gpu.name.startswith("T4")]
    t4g = whole(ModelWorkload(model("Llama-70B"), "int4", context=4096), "T4G")
    assert t4g is not None
    assert (t4g.tensor, t4g.pipeline) == (2, 2), "the largest machine with T4G has two"
    llama = ModelWorkload(model("Llama-70B"), "fp16", context=4096)
    (here,) = (fit for fit in fits(llama, [gpu(A100_40)], {A100_40: 2}) if not fit.profile)
    assert (here.tensor, here.pipeline) == (2, 2), "the nodes of the cluster have two"
    assert (unknown := whole(llama, "A30")) is not None
    assert unknown.tensor == 8, "servers with other GPUs have up to eight"
