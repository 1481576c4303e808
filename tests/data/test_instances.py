"""Cloud machines: found by name, priced by a dated list, and which mistakes in the table would be noticed."""

import copy
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from importlib.resources import files
from typing import Any

import pytest

from shoal.data.instances import Instance, catalog, find_instance, parse_catalog
from shoal.units.errors import BugError

FACTS = json.loads(files("shoal.data").joinpath("instances.json").read_bytes())


def instance(name: str) -> Instance:
    found = find_instance(name)
    assert found is not None
    return found


def test_an_instance_is_found_with_and_without_its_cloud() -> None:
    assert instance("aws/g5.xlarge") is instance("g5.xlarge")
    assert instance("Standard_NV6ads_A10_v5").provider == "azure"
    assert instance("gcp/a2-highgpu-2g").type == "a2-highgpu-2g"
    assert find_instance("aws/a2-highgpu-2g") is None
    assert find_instance("m7i.large") is None


def test_an_instance_knows_its_model() -> None:
    model = instance("g5.xlarge").model()
    assert model is not None
    assert model.name == "A10G"


def test_a_price_is_exactly_what_the_list_printed() -> None:
    assert instance("g4ad.xlarge").usd == Decimal("0.37853")


PER_GPU = {
    "one GPU": ("g5.xlarge", Decimal("1.006")),
    "several": ("g4dn.12xlarge", Decimal("0.978")),
    "an eighth of one": ("g6f.large", Decimal("1.616")),
    "no list price": ("p5e.48xlarge", None),
}


@pytest.mark.parametrize(("name", "want"), PER_GPU.values(), ids=PER_GPU)
def test_the_price_of_one_whole_gpu(name: str, want: Decimal | None) -> None:
    assert instance(name).usd_per_gpu() == want


def test_a_price_grows_stale_after_its_days() -> None:
    listed = instance("g5.xlarge")
    assert catalog().price_date(listed) == date(2026, 7, 20)
    assert not catalog().is_stale(listed, date(2026, 10, 18))
    assert catalog().is_stale(listed, date(2026, 10, 19))


def test_no_price_is_always_stale() -> None:
    assert catalog().is_stale(instance("p5e.48xlarge"), date(2026, 7, 20))


def test_a_model_may_be_unknown_if_the_table_says_so() -> None:
    facts = copy.deepcopy(FACTS)
    facts["instances"][0]["gpu"] = ""
    assert parse_catalog(json.dumps(facts).encode()).instances[0].model() is None


def first(facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = facts["instances"][0]
    return found


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an instance given twice": (lambda f: f["instances"].append(first(f)), "aws/g4ad.xlarge: instance is given 2"),
    "a type of two clouds": (
        lambda f: f["instances"].append({**first(f), "name": "gcp/g4ad.xlarge"}),
        "g4ad.xlarge: type is given 2 times",
    ),
    "a GPU nobody knows": (lambda f: first(f).update(gpu="X9000"), "aws/g4ad.xlarge: unknown GPU model X9000"),
    "a name without its cloud": (lambda f: first(f).update(name="g4ad"), "the name is not cloud/type"),
    "no GPU": (lambda f: first(f).update(gpus=0), "sizes are positive"),
    "a part of two GPUs": (lambda f: first(f).update(gpus=2, fraction=0.5), "a part is of one GPU"),
    "more than the whole of one": (lambda f: first(f).update(fraction=1.5), "above 0 and at most 1"),
    "a price of nothing": (lambda f: first(f).update(usd=0), "the price is not positive"),
    "a price from nowhere": (lambda f: first(f).pop("prices"), "price and price list go together"),
    "a price of a list that is none": (lambda f: first(f).update(prices="x"), "unknown price list x"),
    "spot prices upside down": (lambda f: first(f).update(spot_usd=[2, 1]), "spot prices are not in order"),
    "a spot price without its region": (lambda f: first(f).update(spot_usd=[1, 1]), "without its region"),
    "a discount of everything": (lambda f: first(f).update(spot_discount=1), "below 1"),
    "a discount nobody vouches for": (lambda f: first(f).pop("spot_trust"), "discount and trust go together"),
    "negative disks": (lambda f: first(f).update(nvme_gb=-1), "extras are not negative"),
    "a promise about nothing": (lambda f: f["commitments"][0].update(instance="x"), "unknown instance"),
    "an attachable GPU nobody knows": (lambda f: f["attachable"][0].update(gpu="x"), "unknown GPU model"),
    "another currency": (lambda f: f.update(currency="EUR"), "Invalid enum value 'EUR'"),
}


@pytest.mark.parametrize(("change", "complaint"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_table_is_named(change: Callable[[dict[str, Any]], object], complaint: str) -> None:
    facts = copy.deepcopy(FACTS)
    change(facts)
    with pytest.raises(BugError) as bug:
        parse_catalog(json.dumps(facts).encode())
    assert str(bug.value).startswith("data/instances.json: ")
    assert complaint in str(bug.value)
