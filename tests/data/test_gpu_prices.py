"""Prices of GPU models: listed where a list has them, estimated from facts elsewhere, and ordered."""

from decimal import Decimal

import pytest

from shoal.data.gpu_prices import highest_price_level, price_level, usd_of_gpu, usd_of_model
from shoal.data.gpus import find_model, models
from shoal.data.instances import catalog


def level(product: str) -> int:
    return price_level(usd_of_gpu(product))


def test_a_model_costs_as_much_as_in_its_cheapest_instance() -> None:
    l4 = find_model("L4")
    assert l4 is not None
    listed = [one.usd_per_gpu() for one in catalog().instances if one.model() is l4]
    assert usd_of_model(l4) == min(usd for usd in listed if usd is not None)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_each_model_has_a_price_and_a_level(model: object) -> None:
    found = next(one for one in models() if one is model)
    assert usd_of_model(found) > 0
    assert 1 <= price_level(usd_of_model(found)) < highest_price_level()
    assert level(found.labels[0]) == price_level(usd_of_model(found))


def test_small_gpus_are_cheaper_than_large_ones_of_the_same_time() -> None:
    order = ["Tesla-T4", "NVIDIA-L4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-B200"]
    levels = [level(product) for product in order]
    assert levels == sorted(set(levels))


def test_a_label_with_a_mig_profile_or_of_a_shared_gpu_has_the_price_of_its_model() -> None:
    whole = level("NVIDIA-H100-80GB-HBM3")
    assert level("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb") == level("NVIDIA-H100-80GB-HBM3-SHARED") == whole


def test_a_model_without_a_listed_price_is_priced_by_its_bandwidth() -> None:
    a30, h20 = find_model("A30"), find_model("H20-96GB")
    assert a30 is not None
    assert h20 is not None
    assert all(one.model() not in (a30, h20) for one in catalog().instances if one.usd is not None)
    ratio = Decimal(str(h20.bandwidth_gb_s)) / Decimal(str(a30.bandwidth_gb_s))
    assert usd_of_model(h20) / usd_of_model(a30) == pytest.approx(ratio)


def test_the_type_of_the_machine_names_the_model_where_the_product_does_not() -> None:
    assert usd_of_gpu("", "p5.48xlarge") == usd_of_gpu("NVIDIA-H100-80GB-HBM3")
    assert usd_of_gpu("Fantasy-1", "g6.xlarge") == usd_of_gpu("NVIDIA-L4")
    assert usd_of_gpu("Tesla-T4", "p5.48xlarge") == usd_of_gpu("Tesla-T4")


def test_an_unknown_model_is_priced_by_its_memory_and_is_in_the_middle_without_it() -> None:
    small, large = usd_of_gpu("Fantasy-1", memory_mib=16 * 1024), usd_of_gpu("Fantasy-1", memory_mib=192 * 1024)
    assert large == small * 12
    assert level("Tesla-T4") < price_level(small) < price_level(large)
    cheaper = sum(usd_of_model(model) < usd_of_gpu("Fantasy-1") for model in models())
    dearer = sum(usd_of_model(model) > usd_of_gpu("Fantasy-1") for model in models())
    assert abs(cheaper - dearer) <= 1
    assert usd_of_gpu("Fantasy-1") == usd_of_gpu()
