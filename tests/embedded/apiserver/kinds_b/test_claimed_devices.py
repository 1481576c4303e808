from __future__ import annotations

import copy
from typing import Any

import pytest

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]
GROUP = "resource.k8s.io"
CLAIMS = STRATEGIES[GROUP, "resourceclaims"]


def claim(*requests: Obj, **devices: Any) -> Obj:
    asked = list(requests) or [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return {"metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": {"requests": asked, **devices}}}


def exactly(**fields: Any) -> Obj:
    return claim({"name": "gpu", "exactly": {"deviceClassName": "gpu", **fields}})


def test_a_request_is_for_one_device_unless_it_says_otherwise() -> None:
    made = created(GROUP, "resourceclaims", claim())
    (request,) = made["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert made["status"] == {}
    every = created(GROUP, "resourceclaims", exactly(allocationMode="All"))
    assert "count" not in every["spec"]["devices"]["requests"][0]["exactly"]


def selecting(expression: str) -> list[str]:
    return complaints(GROUP, "resourceclaims", exactly(selectors=[{"cel": {"expression": expression}}]))


def test_selectors_are_compiled_when_they_are_written() -> None:
    path = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert selecting("device.attributes['gpu.example.com'].model == 'H200'") == []
    (text,) = selecting("device.colour == 'red'")
    assert text.startswith(f"{path}: Invalid value: \"device.colour == 'red'\": compilation failed: ERROR: <input>:1:7")
    assert selecting("device.driver") == [
        f'{path}: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string'
    ]


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (claim({"name": "gpu"}),
         "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"),
        (exactly(count=-1), "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"),
        (exactly(allocationMode="All", count=2),
         ("spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is "
          "'All'")),
        (exactly(deviceClassName=""), "spec.devices.requests[0].exactly.deviceClassName: Required value"),
        (claim(constraints=[{"requests": ["cpu"], "matchAttribute": "a.example.com/b"}]),
         ('spec.devices.constraints[0].requests[0]: Invalid value: "cpu": must be the name of a request in the claim '
         "or the name of a request and a subrequest separated by '/'")),
        (claim(constraints=[{"matchAttribute": "b"}]),
         ('spec.devices.constraints[0].matchAttribute: Invalid value: "b": a fully qualified name must be a domain and '
         "a name separated by a slash")),
        (claim(config=[{}]), "spec.devices.config[0].opaque: Required value"),
    ],
)  # fmt: skip
def test_claims_of_devices_are_refused_in_the_words_clients_know(obj: Obj, said: str) -> None:
    assert said in complaints(GROUP, "resourceclaims", obj)


def test_what_a_claim_asks_for_is_said_once() -> None:
    old = created(GROUP, "resourceclaims", claim())
    new = copy.deepcopy(old)
    new["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    (text,) = texts(CLAIMS.validate_update(new, old))
    assert text.endswith("field is immutable")


def allocated(request: str = "gpu") -> Obj:
    result = {"request": request, "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    return {"devices": {"results": [result]}}


def test_a_claim_is_allocated_before_anybody_uses_it() -> None:
    old = created(GROUP, "resourceclaims", claim())
    user = {"resource": "pods", "name": "p", "uid": "u1"}
    assert texts(CLAIMS.validate_status(old | {"status": {"reservedFor": [user]}}, old)) == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]
    used = old | {"status": {"reservedFor": [user], "allocation": allocated()}}
    assert CLAIMS.validate_status(used, old) == []
    moved = copy.deepcopy(used)
    moved["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-1"
    (text,) = texts(CLAIMS.validate_status(moved, used))
    assert text.startswith("status.allocation: Invalid value: ")
    freed = old | {"status": {}}
    assert CLAIMS.validate_status(freed, used) == []


def test_only_what_was_asked_for_is_allocated() -> None:
    old = created(GROUP, "resourceclaims", claim())
    (text,) = texts(CLAIMS.validate_status(old | {"status": {"allocation": allocated("other")}}, old))
    assert text.startswith('status.allocation.devices.results[0].request: Invalid value: "other": must be the name of')


def offered(**spec: Any) -> Obj:
    whole = {"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "resourceSliceCount": 1}, **spec}
    return {"metadata": {"name": "s"}, "spec": whole}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"nodeName": None},
         ("spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
         "required")),
        ({"pool": {"name": "n1"}},
         "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"),
        ({"devices": [{"name": "a", "attributes": {"x": {}}}]},
         'spec.devices[0].attributes[x]: Invalid value: "": exactly one value must be specified'),
        ({"devices": [{"name": "a", "attributes": {"x": {"version": "1"}}}]},
         ('spec.devices[0].attributes[x].version: Invalid value: "1": must be a string compatible with semver.org spec '
         "2.0.0")),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, 'spec.devices[1]: Duplicate value: "a"'),
        ({"devices": [{"name": f"d{number}"} for number in range(129)]},
         "spec.devices: Too many: 129: must have at most 128 items"),
    ],
)  # fmt: skip
def test_slices_are_refused_in_the_words_clients_know(spec: Obj, said: str) -> None:
    assert said in complaints(GROUP, "resourceslices", offered(**spec))


def test_slices_are_found_by_their_node_and_driver() -> None:
    strategy = STRATEGIES[GROUP, "resourceslices"]
    assert complaints(GROUP, "resourceslices", offered()) == []
    assert strategy.fields(offered()) == {"spec.nodeName": "n1", "spec.driver": "gpu.example.com"}


def test_selectors_of_a_class_that_stay_are_not_judged_again() -> None:
    strategy = STRATEGIES[GROUP, "deviceclasses"]
    old: Obj = {"metadata": {"name": "x"}, "spec": {"selectors": [{"cel": {"expression": "device.gone"}}]}}
    assert strategy.validate_update(copy.deepcopy(old), old) == []
    assert len(strategy.validate(old)) == 1


def test_reports_about_a_device_go_with_the_device() -> None:
    held = created(GROUP, "resourceclaims", claim())
    report = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    held["status"] = {"allocation": allocated(), "devices": [report]}
    assert CLAIMS.validate_status(held, held) == []
    freed = copy.deepcopy(held)
    del freed["status"]["allocation"]
    CLAIMS.prepare_status(freed, held)
    assert freed["status"] == {}
    foreign = copy.deepcopy(held)
    foreign["status"]["devices"][0]["device"] = "gpu-9"
    CLAIMS.prepare_status(foreign, held)
    assert texts(CLAIMS.validate_status(foreign, held)) == [
        'status.devices[0]: Invalid value: "gpu.example.com/n1/gpu-9": must be an allocated device in the claim'
    ]
