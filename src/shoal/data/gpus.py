"""GPU models: what they are called on nodes, how large and fast they are, what they draw.

Nodes name their GPU in the label `nvidia.com/gpu.product`, which carries more than the model: an optional
vendor prefix, the MIG profile under the single strategy, and whether the GPU is shared. `read_product`
takes such a label apart; a model it does not know is no error, for new parts appear faster than tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from shoal.data.facts import Fact, load, parse, require, require_unique
from shoal.data.mig import Layout, layout

FILE = "gpus.json"
PRODUCT_LABEL = "nvidia.com/gpu.product"

_VENDOR_PREFIX = "NVIDIA-"
_SHARED_SUFFIX = "-SHARED"
_MIG_MARK = "-MIG-"
_UNPREFIXED = ("Tesla-", "Quadro-", "GeForce-", _VENDOR_PREFIX)
_FAMILY = re.compile(r"(?<![A-Z0-9])[A-Z]{1,2}\d{1,4}[A-Z]?(?![A-Z0-9])")

Trust = Literal["high", "medium", "low"]


class Model(Fact, frozen=True):
    name: str
    vendor: Literal["nvidia", "amd"]
    architecture: str
    form: str
    labels: tuple[str, ...]
    memory_gb: int
    usable_mib: int | None
    memory_type: str
    bandwidth_gb_s: float
    fp16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    power_w: int
    link: str
    link_gb_s: float
    compute_capability: str
    mig: str
    trust: Trust
    note: str = ""

    def memory_mib(self) -> int:
        """Usable memory where known, else the size on the box, which counts in thousands."""
        return self.usable_mib if self.usable_mib is not None else self.memory_gb * 10**9 // 2**20

    def mig_layout(self) -> Layout | None:
        return layout(self.mig) if self.mig else None


@dataclass(frozen=True, slots=True)
class Product:
    """A product label taken apart: `name` is what is left of it, `model` is None where we know none."""

    name: str
    model: Model | None
    mig_profile: str
    is_shared: bool


class _GpuFile(Fact, frozen=True):
    about: tuple[str, ...]
    sources: dict[str, str]
    models: tuple[Model, ...]


def models() -> tuple[Model, ...]:
    return _models()


def find_model(name: str) -> Model | None:
    """By our name or by product label, vendor prefix or not, upper or lower case."""
    return _by_name().get(_plain(name))


def read_product(label: str) -> Product:
    rest = label.removesuffix(_SHARED_SUFFIX)
    name, _, profile = rest.partition(_MIG_MARK)
    return Product(
        name=name.removeprefix(_VENDOR_PREFIX),
        model=find_model(name),
        mig_profile=profile,
        is_shared=rest != label,
    )


def family(name: str) -> str:
    """`A100` of any spelling of any of its variants; empty where the name has nothing of the kind."""
    found = _FAMILY.search(_plain(name))
    return found[0] if found is not None else ""


def models_of_family(name: str) -> tuple[Model, ...]:
    """All models of a family, such as `A100`, in upper or lower case."""
    return tuple(model for model in models() if family(model.name) == _plain(name))


def meant_products(asked: str, present: Iterable[str]) -> tuple[str, ...]:
    """Product labels that may have been meant by one that no node has: the same with the vendor in front, then those of
    its family that nodes do have, then those of its family with one letter more, as A10G of A10."""
    whole = (_in_full(asked),) if is_short_product(asked) else ()
    ours = family(asked)
    known = sorted(present) if ours else []
    same = (one for one in known if family(one) == ours)
    variants = (one for one in known if ours[-1].isdigit() and family(one)[:-1] == ours and family(one)[-1].isalpha())
    return tuple(dict.fromkeys((*whole, *same, *variants)))


def is_short_product(name: str) -> bool:
    """Whether the vendor is missing that drivers put in front of it since R470."""
    return not name.startswith(_UNPREFIXED) and find_model(name) is not None


def _in_full(asked: str) -> str:
    model = find_model(asked)
    labels = model.labels if model is not None else (asked,)
    label = next((one for one in labels if _plain(one) == _plain(asked)), labels[0])
    return label if label.startswith(_UNPREFIXED) else _VENDOR_PREFIX + label


def parse_models(data: bytes) -> tuple[Model, ...]:
    """Read and check; for tests, and for facts in files of the user."""
    return _checked(parse(data, FILE, _GpuFile).models)


@cache
def _models() -> tuple[Model, ...]:
    return _checked(load(FILE, _GpuFile).models)


@cache
def _by_name() -> dict[str, Model]:
    return {_plain(name): model for model in models() for name in (model.name, *model.labels)}


def _plain(name: str) -> str:
    return name.upper().removeprefix(_VENDOR_PREFIX)


def _checked(models: tuple[Model, ...]) -> tuple[Model, ...]:
    require_unique((model.name for model in models), FILE, "model")
    names = [(_plain(name), model.name) for model in models for name in {model.name, *model.labels}]
    require_unique((plain for plain, _ in {*names}), FILE, "label")
    for model in models:
        _check_model(model)
    return models


def _check_model(model: Model) -> None:
    require(model.labels, FILE, model.name, "no labels")
    for label in model.labels:
        bare = not label.startswith(_VENDOR_PREFIX) and _MIG_MARK not in label
        require(bare, FILE, model.name, f"label {label} carries a prefix or suffix")
    amounts = (model.memory_gb, model.bandwidth_gb_s, model.power_w)
    require(all(amount > 0 for amount in amounts), FILE, model.name, "memory, bandwidth and power are positive")
    rates = [rate for rate in (model.fp16_tflops, model.fp8_tflops, model.fp4_tflops) if rate is not None]
    require(all(rate > 0 for rate in rates), FILE, model.name, "rates are positive")
    require(rates == sorted(rates), FILE, model.name, "a coarser number format is not slower")
    require(bool(model.link) == (model.link_gb_s > 0), FILE, model.name, "link and its rate go together")
    if model.usable_mib is not None:
        near = 0.9 < model.usable_mib * 2**20 / (model.memory_gb * 10**9) < 1.1
        require(near, FILE, model.name, "usable memory is far from the size on the box")
    if model.mig:
        found = model.mig_layout()
        require(found is not None, FILE, model.name, f"no MIG layout {model.mig}")
        same = found is not None and found.compute_capability == model.compute_capability
        require(same, FILE, model.name, f"MIG layout {model.mig} is of another compute capability")
