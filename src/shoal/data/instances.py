"""Cloud machines with GPUs: their shape, and what a list said they cost on a day.

Prices are facts about a list with a date, not about today: every price names its list, so that its age
can be shown. Money is `Decimal`, exactly as printed in the list.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache
from typing import Literal

from shoal.data.facts import Fact, load, parse, require, require_unique
from shoal.data.gpus import Model, find_model

FILE = "instances.json"

Trust = Literal["high", "medium", "low", ""]


class PriceList(Fact, frozen=True):
    date: date
    about: str


class Instance(Fact, frozen=True):
    name: str
    family: str
    gpu: str
    gpus: int
    gpu_gib: float
    vcpus: int
    memory_gib: float
    trust: Trust
    region: str = ""
    fraction: float = 1.0
    arch: Literal["amd64", "arm64"] = "amd64"
    network_gbps: float | None = None
    rdma: int | None = None
    nvme_gb: int | None = None
    usd: Decimal | None = None
    prices: str = ""
    spot_usd: tuple[Decimal, Decimal] | None = None
    spot_region: str = ""
    spot_discount: Decimal | None = None
    spot_trust: Trust = ""
    approximate: bool = False
    note: str = ""

    @property
    def provider(self) -> str:
        return self.name.partition("/")[0]

    @property
    def type(self) -> str:
        """The name without its cloud, as nodes carry it in `node.kubernetes.io/instance-type`."""
        return self.name.partition("/")[2]

    def model(self) -> Model | None:
        return find_model(self.gpu) if self.gpu else None

    def usd_per_gpu(self) -> Decimal | None:
        """Per whole GPU, so that a machine with a part of one compares with the others."""
        return self.usd / (self.gpus * Decimal(str(self.fraction))) if self.usd is not None else None


class Attachable(Fact, frozen=True):
    """A GPU sold apart from the machine it is put into."""

    provider: str
    gpu: str
    usd: Decimal
    spot_usd: Decimal
    prices: str


class Commitment(Fact, frozen=True):
    """What promising to pay for years once took off a list price: an orientation for estimates."""

    instance: str
    years: int
    discount: Decimal


class InstanceCatalog(Fact, frozen=True):
    about: tuple[str, ...]
    currency: Literal["USD"]
    stale_after_days: int
    price_lists: dict[str, PriceList]
    attachable: tuple[Attachable, ...]
    commitments: tuple[Commitment, ...]
    instances: tuple[Instance, ...]

    def price_date(self, instance: Instance) -> date | None:
        return self.price_lists[instance.prices].date if instance.prices else None

    def is_stale(self, instance: Instance, today: date) -> bool:
        """True also where there is no price at all: either way, ask the cloud."""
        found = self.price_date(instance)
        return found is None or (today - found).days > self.stale_after_days


def find_instance(name: str) -> Instance | None:
    """By `cloud/type` or by the type alone; types are unique across clouds."""
    return _by_name().get(name)


def most_gpus_of(model: Model) -> int:
    """GPUs of the largest machine with this model; 0 if no machine of the catalogue has it."""
    return _most_gpus().get(model.name, 0)


def parse_catalog(data: bytes) -> InstanceCatalog:
    """Read and check; for tests, and for facts in files of the user."""
    return _checked(parse(data, FILE, InstanceCatalog))


@cache
def catalog() -> InstanceCatalog:
    return _checked(load(FILE, InstanceCatalog))


@cache
def _most_gpus() -> dict[str, int]:
    found: dict[str, int] = {}
    for instance in catalog().instances:
        model = instance.model()
        if model is not None:
            found[model.name] = max(found.get(model.name, 0), instance.gpus)
    return found


@cache
def _by_name() -> dict[str, Instance]:
    return {name: instance for instance in catalog().instances for name in (instance.name, instance.type)}


def _checked(facts: InstanceCatalog) -> InstanceCatalog:
    require_unique((one.name for one in facts.instances), FILE, "instance")
    require_unique((one.type for one in facts.instances), FILE, "type")
    require(facts.stale_after_days > 0, FILE, "stale_after_days", "must be positive")
    for instance in facts.instances:
        _check_shape(instance)
        _check_price(instance, facts)
    for item in facts.attachable:
        require(find_model(item.gpu), FILE, f"attachable {item.gpu}", "unknown GPU model")
        require(item.prices in facts.price_lists, FILE, f"attachable {item.gpu}", "unknown price list")
        require(0 < item.spot_usd <= item.usd, FILE, f"attachable {item.gpu}", "prices are not in order")
    names = {one.name for one in facts.instances}
    for promise in facts.commitments:
        entry = f"commitment {promise.instance}"
        require(promise.instance in names, FILE, entry, "unknown instance")
        require(0 < promise.discount < 1 and promise.years > 0, FILE, entry, "discount or years make no sense")
    return facts


def _check_shape(one: Instance) -> None:
    require(one.provider and one.type, FILE, one.name, "the name is not cloud/type")
    # An empty name says that the model is unknown; an unknown name is a mistake.
    require(not one.gpu or find_model(one.gpu), FILE, one.name, f"unknown GPU model {one.gpu}")
    sizes = (one.gpus, one.gpu_gib, one.vcpus, one.memory_gib)
    require(all(size > 0 for size in sizes), FILE, one.name, "sizes are positive")
    require(0 < one.fraction <= 1, FILE, one.name, "a fraction is above 0 and at most 1")
    require(one.fraction == 1 or one.gpus == 1, FILE, one.name, "a part is of one GPU")
    extras = (one.network_gbps, one.rdma, one.nvme_gb)
    require(all(extra is None or extra >= 0 for extra in extras), FILE, one.name, "extras are not negative")


def _check_price(one: Instance, facts: InstanceCatalog) -> None:
    require(one.usd is None or one.usd > 0, FILE, one.name, "the price is not positive")
    require((one.usd is None) == (not one.prices), FILE, one.name, "price and price list go together")
    require(not one.prices or one.prices in facts.price_lists, FILE, one.name, f"unknown price list {one.prices}")
    if one.spot_usd is not None:
        low, high = one.spot_usd
        require(0 < low <= high, FILE, one.name, "spot prices are not in order")
        require(one.spot_region, FILE, one.name, "a spot price without its region")
    if one.spot_discount is not None:
        require(0 <= one.spot_discount < 1, FILE, one.name, "a discount is at least 0 and below 1")
    require((one.spot_discount is None) == (not one.spot_trust), FILE, one.name, "discount and trust go together")
