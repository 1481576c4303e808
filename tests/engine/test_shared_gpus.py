"""Parts of GPUs beside other schedulers, which see nothing of them."""

from __future__ import annotations

import pytest

from build.nodes import node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.device_demand import GpuShares, MemoryShares
from shoal.engine.device_notation.names import SHARING_TAINT
from shoal.engine.events import OthersSeen
from shoal.engine.evidence import evidence
from shoal.engine.reasons import Code
from shoal.views.why import kube_line

SHARED, KEPT = node("shared").gpus(2).memory_mib(40_000), node("kept").gpus(2).memory_mib(40_000).taint(SHARING_TAINT)
PARTS: dict[str, AskBuilder] = {
    "a part": ask().share(500),
    "several parts": ask().demand(GpuShares(2, 500)),
    "memory": ask().demand(MemoryShares(1, 10_000)),
}


@pytest.mark.parametrize("part", PARTS)
def test_they_go_to_nodes_that_are_kept_for_them_while_others_place_gpus(part: str) -> None:
    world = Scenario(SHARED, KEPT)
    assert world.fitting(PARTS[part]) == {"shared", "kept"}
    world.apply(OthersSeen(place_gpus=True))
    assert world.fitting(PARTS[part]) == {"kept"}
    world.apply(OthersSeen(place_gpus=False))
    assert world.fitting(PARTS[part]) == {"shared", "kept"}


@pytest.mark.parametrize("wanted", [ask().gpus(1), ask().cpu(1)], ids=["whole GPUs", "no GPU"])
def test_what_others_see_goes_anywhere_but_to_those_nodes(wanted: AskBuilder) -> None:
    world = Scenario(SHARED, KEPT).apply(OthersSeen(place_gpus=True))
    assert world.fitting(wanted) == {"shared"}


def test_a_part_tolerates_no_other_taint_by_itself() -> None:
    world = Scenario(KEPT.taint("x"), node("gone").gpus(1).taint(SHARING_TAINT, effect="NoExecute"))
    assert world.fitting(PARTS["a part"]) == set()


def test_the_reason_says_how_to_mend_it() -> None:
    world = Scenario(SHARED, node("without").cpu(1)).apply(OthersSeen(place_gpus=True))
    found = evidence(world.cluster, PARTS["a part"].made())
    assert [(cause.code, cause.nodes) for cause in found.causes if cause.code is Code.SHARING_UNSEEN] == [
        (Code.SHARING_UNSEEN, 1)
    ]
    assert "(keep nodes for parts with taint shoal.dev/gpu-sharing:NoSchedule)" in kube_line(found)
