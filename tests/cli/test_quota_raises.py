"""Quotas of a live cluster: an Event names the first that refuses a pod, and the others are judged beside it."""

from __future__ import annotations

import pytest

from build.manifests import Object, pod, thing
from shoal.api.decode import convert
from shoal.api.pod import Pod
from shoal.cli.quota_raises import also_exceeded
from shoal.units.errors import Where
from shoal.units.quantity import Quantity
from shoal.views.refused_pods import Exceeded

GPUS = "requests.nvidia.com/gpu"
WANTED = convert(pod("t/w-0", 4), Pod, Where())
TOLD = Exceeded("qa", GPUS, Quantity.of(4), Quantity.of(0), Quantity.of(2), 2)


def quota(name: str, hard: Object, used: Object) -> Object:
    return thing("v1", "ResourceQuota", f"t/{name}", spec={"hard": hard}, status={"hard": hard, "used": used})


def test_a_quota_that_the_event_does_not_name_is_raised_too() -> None:
    quotas = [quota("qa", {GPUS: "2"}, {GPUS: "0"}), quota("qb", {GPUS: "9", "pods": "1"}, {GPUS: "3", "pods": "1"})]
    first, *others = also_exceeded([TOLD], quotas, WANTED, 2)
    assert first == TOLD
    assert sorted((each.name, each.resource, str(each.wanted)) for each in others) == [
        ("qb", "pods", "3"),
        ("qb", GPUS, "11"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        quota("qb", {GPUS: "11"}, {GPUS: "3"}),
        quota("qb", {"count/jobs.batch": "0"}, {}),
        quota("qb", {"requests.cpu": "0"}, {}),
    ],
    ids=["enough", "of other objects", "of what the pod does not request"],
)
def test_a_quota_that_has_enough_is_left_as_it_is(other: Object) -> None:
    assert also_exceeded([TOLD], [other], WANTED, 2) == [TOLD]
