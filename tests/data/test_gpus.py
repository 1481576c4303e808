"""GPU models: how nodes name them, and which mistakes in the table would be noticed."""

import copy
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from shoal.data.gpus import find_model, models, parse_models, read_product
from shoal.units.errors import BugError

FACTS = json.loads(files("shoal.data").joinpath("gpus.json").read_bytes())

LABELS = {
    "with the vendor": ("NVIDIA-A100-SXM4-80GB", ("A100-SXM4-80GB", "", False)),
    "without the vendor": ("A100-SXM4-80GB", ("A100-SXM4-80GB", "", False)),
    "of an older family": ("Tesla-V100-SXM2-32GB", ("V100-SXM2-32GB", "", False)),
    "whose order of words differs from the model's": ("NVIDIA-A100-80GB-PCIe", ("A100-PCIe-80GB", "", False)),
    "of a shared GPU": ("Tesla-T4-SHARED", ("T4", "", True)),
    "of a MIG instance": ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", ("A100-SXM4-40GB", "1g.5gb", False)),
    "of a MIG instance with media engines": (
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me",
        ("A100-SXM4-40GB", "1g.5gb.me", False),
    ),
    "of a shared MIG instance": (
        "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb-SHARED",
        ("H100-SXM5-80GB", "3g.40gb", True),
    ),
    "in lower case": ("nvidia-l40s", ("L40S", "", False)),
    "of another vendor": ("AMD-Instinct-MI300X", ("MI300X", "", False)),
    "of a part we do not know": ("NVIDIA-X9000-SHARED", (None, "", True)),
    "too short to tell": ("NVIDIA-A100", (None, "", False)),
    "empty": ("", (None, "", False)),
}


@pytest.mark.parametrize(("label", "want"), LABELS.values(), ids=LABELS)
def test_a_product_label(label: str, want: tuple[str | None, str, bool]) -> None:
    product = read_product(label)
    assert (product.model.name if product.model else None, product.mig_profile, product.is_shared) == want


def test_an_unknown_product_keeps_its_name() -> None:
    assert read_product("NVIDIA-X9000-MIG-1g.5gb-SHARED").name == "X9000"


def test_every_model_is_found_by_its_name_and_all_its_labels() -> None:
    for model in models():
        for name in (model.name, *model.labels):
            assert find_model(name) is model
            assert find_model(f"NVIDIA-{name}") is model


def test_memory_is_what_is_usable_where_that_is_known() -> None:
    a10g, h100 = find_model("A10G"), find_model("H100-PCIe-80GB")
    assert a10g is not None
    assert h100 is not None
    assert a10g.memory_mib() == 22888
    assert h100.memory_mib() == 76293


def test_a_model_that_can_be_cut_knows_its_layout() -> None:
    h100, l4 = find_model("NVIDIA-H100-80GB-HBM3"), find_model("L4")
    assert h100 is not None
    assert l4 is not None
    found = h100.mig_layout()
    assert found is not None
    assert found.name == "H100-80GB"
    assert l4.mig_layout() is None


def edit(change: Callable[[dict[str, Any]], object]) -> bytes:
    facts = copy.deepcopy(FACTS)
    change({model["name"]: model for model in facts["models"]} | {"": facts})
    return json.dumps(facts).encode()


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a model given twice": (lambda f: f["T4"].update(name="L4", labels=["x"]), "L4: model is given 2 times"),
    "a label given twice": (lambda f: f["T4"]["labels"].append("L4"), "L4: label is given 2 times"),
    "no labels": (lambda f: f["T4"].update(labels=[]), "T4: no labels"),
    "a label with the vendor's prefix": (lambda f: f["T4"].update(labels=["NVIDIA-T4"]), "carries a prefix"),
    "no power": (lambda f: f["T4"].update(power_w=0), "T4: memory, bandwidth and power are positive"),
    "a negative rate": (lambda f: f["T4"].update(fp16_tflops=-1), "T4: rates are positive"),
    "a coarse format slower than a fine one": (lambda f: f["L4"].update(fp8_tflops=1), "a coarser number format"),
    "a link without its rate": (lambda f: f["T4"].update(link="nvlink"), "link and its rate go together"),
    "a usable size of another part": (lambda f: f["T4"].update(usable_mib=8192), "far from the size on the box"),
    "a layout that is none": (lambda f: f["A30"].update(mig="A31"), "A30: no MIG layout A31"),
    "a layout of another family": (lambda f: f["A30"].update(mig="B300"), "of another compute capability"),
    "a vendor nobody knows": (lambda f: f["T4"].update(vendor="acme"), "Invalid enum value 'acme'"),
}


@pytest.mark.parametrize(("change", "complaint"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_table_is_named(change: Callable[[dict[str, Any]], object], complaint: str) -> None:
    with pytest.raises(BugError) as bug:
        parse_models(edit(change))
    assert str(bug.value).startswith("data/gpus.json: ")
    assert complaint in str(bug.value)
