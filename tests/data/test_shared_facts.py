"""Where the collected facts lie beside the checkout, the shipped tables must say the same.

They are not part of the product; without them these tests are skipped.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.data.gpus import find_model, models
from shoal.data.instances import catalog, find_instance
from shoal.data.mig import layout, layouts

COLLECTED = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not COLLECTED.is_dir(), reason="the collected facts are not here")


def collected(name: str) -> Any:
    return json.loads((COLLECTED / name).read_bytes())


def test_every_layout_and_profile_agrees() -> None:
    gpus = collected("mig_profiles.json")["gpus"]
    assert {gpu["key"] for gpu in gpus} == {one.name for one in layouts()}
    for gpu in gpus:
        ours = layout(gpu["key"])
        assert ours is not None
        assert (ours.memory_slices, ours.compute_slices) == (gpu["memory_slices"], gpu["max_compute_slices"])
        assert [(p.name, p.id, list(p.starts), p.width, p.max, p.memory_mib) for p in ours.profiles] == [
            (
                p["name"],
                p["id"],
                p["placement_starts"],
                p["memory_slices"],
                p["max_instances"],
                p["memory_mib"],
            )
            for p in gpu["profiles"]
        ]


def test_every_model_agrees() -> None:
    gpus = collected("gpu_models.json")["models"]
    assert len(gpus) == len(models())
    for gpu in gpus:
        ours = find_model(gpu["id"])
        assert ours is not None
        assert (ours.memory_gb, ours.power_w, ours.usable_mib, ours.trust) == (
            gpu["memory_gb"],
            gpu["tdp_w"],
            gpu["memory_usable_mib"],
            gpu["confidence"],
        )
        for label in gpu["product_label_examples"]:
            assert find_model(label) is ours


def test_the_profiles_of_a_model_are_those_of_its_layout() -> None:
    for gpu in collected("gpu_models.json")["models"]:
        ours = find_model(gpu["id"])
        assert ours is not None
        found = ours.mig_layout()
        plain = {p.name: p.max for p in found.profiles if "+" not in p.name and "-" not in p.name} if found else {}
        assert plain == gpu["mig_profiles"]


def test_every_instance_agrees() -> None:
    rows = collected("instance_catalog.json")["rows"]
    assert len(rows) == len(catalog().instances)
    for row in rows:
        ours = find_instance(f"{row['provider']}/{row['name']}")
        assert ours is not None
        assert (ours.gpu, ours.gpus, ours.vcpus, ours.memory_gib) == (
            row["gpu_model"],
            row["gpu_count"],
            row["vcpus"],
            row["memory_gib"],
        )
        assert (float(ours.usd) if ours.usd is not None else None) == row["on_demand_usd_per_hour"]
