"""What is told when pods find no place, and which requests cannot be read."""

from __future__ import annotations

import msgspec
import pytest

from build.tas import BLOCK, HOST, LEVELS, RACK, TasWorld, host, hosts, pods, preferred, required
from shoal.api.taints import Taint
from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.tas.levels_request import LAYERS
from shoal.engine.queues.topology_facts import SliceLayer, TopologyRequest

TAINT = Taint("gpu", "NoSchedule", "present")

UNUSABLE: dict[str, dict[str, object]] = {
    "not ready": {"ready": False},
    "cordoned": {"unschedulable": True},
    "without a level's label": {"labels": {HOST: "x1", RACK: "r"}},
}


@pytest.mark.parametrize("how", UNUSABLE)
def test_nodes_that_do_not_count(how: str) -> None:
    world = TasWorld([msgspec.structs.replace(host("b-r-x1", 9), **UNUSABLE[how])])
    assert world.refuses(pods(1, topology=required(RACK))).message == "no topology domains at level: rack"


REFUSALS: dict[str, tuple[PodSet, int | None, int | None, str]] = {
    "too many for any host": (pods(5, topology=required(HOST)), 4, 5, "pod"),
    "too many for all": (pods(9, topology=preferred(HOST)), 7, 9, "pod"),
    "nowhere a slice": (pods(5, topology=required(BLOCK, slice_level=HOST, slice_size=5)), 0, 1, "slice"),
    "not all slices": (pods(6, topology=required(BLOCK, slice_level=HOST, slice_size=2)), 2, 3, "slice"),
    "an unknown level": (pods(1, topology=required("zone")), None, None, "pod"),
    "slices wider than all pods": (pods(2, topology=required(HOST, slice_level=RACK, slice_size=1)), None, None, "pod"),
    "slices at an unknown level": (pods(2, topology=required(HOST, slice_level="z", slice_size=1)), None, None, "pod"),
    "slices without a size": (pods(2, topology=required(RACK, slice_level=HOST)), None, None, "pod"),
    "not one whole slice": (pods(1, topology=required(RACK, slice_level=HOST, slice_size=2)), None, None, "pod"),
    "nothing asked of a topology": (pods(1, topology=TopologyRequest()), None, None, "pod"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_how_much_fits(name: str) -> None:
    wants, *expected = REFUSALS[name]
    refused = TasWorld(hosts("b1-r1-x1=4", "b1-r1-x2=1", "b2-r2-x3=2")).refuses(wants)
    assert [refused.fits, refused.wanted, refused.unit] == expected


def test_a_refusal_says_what_kept_hosts_out() -> None:
    tainted = msgspec.structs.replace(host("b-r-x1", 9), taints=(TAINT,))
    refused = TasWorld([tainted, host("b-r-x2", 0), host("b-r-x3", 0, pods=0), host("b-r-x4", 1)]).refuses(
        pods(2, topology=required(RACK))
    )
    assert refused.message == (
        'topology "t" allows to fit only 1 out of 2 pod(s). '
        'Total nodes: 4; excluded: resource "cpu": 2, taint "gpu=present:NoSchedule": 1'
    )


BROKEN_LAYERS = {
    "an inner layer that is not further in": (SliceLayer(RACK, 4), SliceLayer(RACK, 2)),
    "an inner size that does not divide the outer": (SliceLayer(RACK, 4), SliceLayer(HOST, 3)),
}


@pytest.mark.parametrize("name", BROKEN_LAYERS)
def test_layers_that_do_not_nest_are_refused(name: str) -> None:
    wants = pods(4, topology=required(BLOCK, layers=BROKEN_LAYERS[name]))
    assert TasWorld(hosts("b-r-x1=9"), LEVELS, LAYERS).refuses(wants).fits is None
