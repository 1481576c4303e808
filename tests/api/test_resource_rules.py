"""Requests and limits the API server refuses, in its words and at its field."""

import pytest

from shoal.api.container import Container, Resources
from shoal.api.pod import PodSpec
from shoal.api.resource_rules import check_amounts, check_pod_resources
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

Amounts = dict[str, str]


def resources(requests: Amounts, limits: Amounts) -> Resources:
    return Resources(
        {name: Quantity.parse(text) for name, text in requests.items()},
        {name: Quantity.parse(text) for name, text in limits.items()},
    )


ACCEPTED: dict[str, tuple[Amounts, Amounts]] = {
    "nothing": ({}, {}),
    "half a core": ({"cpu": "500m"}, {}),
    "a request below its limit": ({"cpu": "1"}, {"cpu": "2"}),
    "devices by limit alone": ({}, {"nvidia.com/gpu": "1"}),
    "devices with request and limit alike": ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "2"}),
    "whole devices however written": ({}, {"nvidia.com/gpu": "1000m"}),
    "no devices": ({}, {"nvidia.com/gpu": "0"}),
    "huge pages with memory": ({}, {"hugepages-2Mi": "4Mi", "memory": "1Gi"}),
    "a terabyte-scale pod": ({"memory": "24Ti", "cpu": "896"}, {}),
}


@pytest.mark.parametrize(("requests", "limits"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(requests: Amounts, limits: Amounts) -> None:
    asked = resources(requests, limits)
    check_pod_resources(PodSpec((Container(resources=asked),)), Where(path="spec"))
    negative = resources({**requests, "example.com/disk": "-1"}, limits)
    with pytest.raises(UserError, match=r"example\.com/disk"):
        check_pod_resources(PodSpec((Container(resources=negative),)), Where(path="spec"))


REFUSED: dict[str, tuple[Amounts, Amounts, str]] = {
    "half a device": (
        {},
        {"nvidia.com/gpu": "500m"},
        'limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    "fewer devices than the limit": (
        {"nvidia.com/gpu": "1"},
        {"nvidia.com/gpu": "2"},
        'requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
    ),
    "devices by request alone": (
        {"nvidia.com/gpu": "1"},
        {},
        "limits[nvidia.com/gpu]: Limit must be set for non overcommitable resources",
    ),
    "more than the limit": (
        {"memory": "2Gi"},
        {"memory": "1Gi"},
        'requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi',
    ),
    "less than nothing": ({"cpu": "-1"}, {}, 'requests.cpu: Invalid value: "-1": must be greater than or equal to 0'),
    "an absurd amount": ({"memory": "8Ei"}, {}, "is absurdly large"),
    "absurdly many cores": ({"cpu": "1e16"}, {}, "is absurdly large"),
    "a device without its vendor": ({}, {"gpu": "1"}, "must be a standard resource for containers or fully qualified"),
    "a name that is none": ({}, {"nvidia.com/": "1"}, '"nvidia.com/" is not a resource name'),
    "huge pages alone": ({}, {"hugepages-2Mi": "4Mi"}, "HugePages require cpu or memory"),
    "huge pages below their limit": (
        {"hugepages-2Mi": "2Mi"},
        {"hugepages-2Mi": "4Mi", "cpu": "1"},
        "must be equal to hugepages-2Mi limit of 4Mi",
    ),
}


@pytest.mark.parametrize(("requests", "limits", "complaint"), REFUSED.values(), ids=REFUSED)
def test_refused(requests: Amounts, limits: Amounts, complaint: str) -> None:
    spec = PodSpec((Container(),), (Container(), Container(resources=resources(requests, limits))))
    with pytest.raises(UserError) as refusal:
        check_pod_resources(spec, Where(path="spec"))
    assert str(refusal.value).startswith("spec.initContainers[1].resources")
    assert complaint in str(refusal.value)


def test_a_pod_as_a_whole_cannot_ask_for_devices() -> None:
    spec = PodSpec((Container(),), resources=resources({}, {"nvidia.com/gpu": "1"}))
    with pytest.raises(UserError, match=r"spec\.resources\.limits\[nvidia.com/gpu\]: .* not a resource of the pod"):
        check_pod_resources(spec, Where(path="spec"))


def test_overhead_cannot_be_negative() -> None:
    spec = PodSpec((Container(),), overhead={"cpu": Quantity.parse("-1")})
    with pytest.raises(UserError, match=r"spec\.overhead\.cpu"):
        check_pod_resources(spec, Where(path="spec"))


def test_a_node_may_offer_whatever_its_plugins_say_but_not_less_than_nothing() -> None:
    check_amounts({"gpu": Quantity.parse("4"), "pods": Quantity.parse("110")}, Where(path="capacity"))
    with pytest.raises(UserError, match=r"capacity\.pods"):
        check_amounts({"pods": Quantity.parse("-1")}, Where(path="capacity"))
