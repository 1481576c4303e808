"""LimitRanges: what is filled in, what is refused, in whose words."""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_reader import FakeReader, Obj, container, creating, named, pod, updating, world
from shoal.embedded.apiserver.admission.chain import builtin_plugins
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.status import ApiError

GPU = "nvidia.com/gpu"


def limit_range(*limits: Obj, name: str = "limits") -> Obj:
    return named("LimitRange", name, spec={"limits": list(limits)})


def per(kind: str = "Container", **bounds: Any) -> Obj:
    return {"type": kind, **bounds}


def admitted(reader: FakeReader, write: AdmissionAttributes) -> Obj:
    plugins = builtin_plugins(reader)
    plugins.mutate(write)
    plugins.validate(write)
    return write.obj or {}


def refused(reader: FakeReader, write: AdmissionAttributes) -> str:
    with pytest.raises(ApiError) as caught:
        admitted(reader, write)
    assert caught.value.code == 403
    return caught.value.message


def test_the_default_gives_every_container_a_gpu_sidecars_too() -> None:
    reader = world(limit_range(per(default={GPU: "1"}, defaultRequest={GPU: "1"})))
    made = admitted(reader, creating(pod("x", container("train"), container("log"))))
    assert [one["resources"] for one in made["spec"]["containers"]] == [
        {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    ] * 2
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: nvidia.com/gpu request for container train; nvidia.com/gpu limit for container train; "
        "nvidia.com/gpu request for container log; nvidia.com/gpu limit for container log"
    )


def test_what_a_container_says_stays_and_init_containers_are_filled_too() -> None:
    reader = world(limit_range(per(default={"cpu": "4", "memory": "16Gi"}, defaultRequest={"cpu": "2"})))
    made = admitted(
        reader, creating(pod("x", container("a", {"cpu": "1"}, {"cpu": "1"}), initContainers=[container("i")]))
    )
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "1", "memory": "16Gi"},
    }
    assert made["spec"]["initContainers"][0]["resources"] == {
        "requests": {"cpu": "2"},
        "limits": {"cpu": "4", "memory": "16Gi"},
    }
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory limit for container a; cpu request for init container i; "
        "cpu, memory limit for init container i"
    )


@pytest.mark.parametrize(
    ("limit", "requests", "limits", "words"),
    [
        (
            per(max={GPU: "2"}),
            {GPU: "3"},
            {GPU: "3"},
            "maximum nvidia.com/gpu usage per Container is 2, but limit is 3",
        ),
        (per(max={"cpu": "1"}), {"cpu": "2"}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        (
            per(min={GPU: "1"}),
            {"cpu": "1"},
            {"cpu": "1"},
            "minimum nvidia.com/gpu usage per Container is 1.  No request is specified",
        ),
        (
            per(min={"memory": "500Mi"}),
            {"memory": "100Mi"},
            {"memory": "1Gi"},
            "minimum memory usage per Container is 500Mi, but request is 100Mi",
        ),
        (
            per(maxLimitRequestRatio={"memory": "2"}),
            {"memory": "100Mi"},
            {"memory": "300Mi"},
            "memory max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            per(maxLimitRequestRatio={"memory": "2"}),
            {},
            {"memory": "300Mi"},
            "memory max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            per(max={"cpu": "1", "memory": "1Gi"}),
            {"cpu": "2", "memory": "2Gi"},
            {"cpu": "2", "memory": "2Gi"},
            (
                "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, "
                "but limit is 2Gi]"
            ),
        ),
        (
            per("Pod", max={"cpu": "1"}),
            {"cpu": "600m"},
            {"cpu": "1100m"},
            "maximum cpu usage per Pod is 1, but limit is 1100m",
        ),
    ],
)
def test_a_pod_outside_the_bounds_is_refused(limit: Obj, requests: Obj, limits: Obj, words: str) -> None:
    write = creating(pod("x", container("c", requests, limits)))
    assert refused(world(limit_range(limit)), write) == f'pods "x" is forbidden: {words}'


def test_bounds_of_a_pod_hold_for_the_sum_and_for_its_greatest_init_container() -> None:
    reader = world(limit_range(per("Pod", max={"cpu": "2"})))
    half = container("a", {"cpu": "1"}, {"cpu": "1"})
    admitted(reader, creating(pod("x", half, {**half, "name": "b"})))
    assert "but limit is 3" in refused(
        reader, creating(pod("x", half, initContainers=[container("i", {"cpu": "3"}, {"cpu": "3"})]))
    )
    sidecar = {**container("s", {"cpu": "1"}, {"cpu": "1"}), "restartPolicy": "Always"}
    assert "but limit is 3" in refused(
        reader, creating(pod("x", half, {**half, "name": "b"}, initContainers=[sidecar]))
    )


def test_the_same_fault_of_several_containers_is_said_once() -> None:
    big = container("a", {GPU: "3"}, {GPU: "3"})
    words = refused(world(limit_range(per(max={GPU: "2"}))), creating(pod("x", big, {**big, "name": "b"})))
    assert words == 'pods "x" is forbidden: maximum nvidia.com/gpu usage per Container is 2, but limit is 3'


def test_claims_have_bounds_of_their_own() -> None:
    reader = world(limit_range(per("PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "10Gi"})))
    for size, words in (
        ("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"),
        ("11Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"),
    ):
        claim = named("PersistentVolumeClaim", "data", spec={"resources": {"requests": {"storage": size}}})
        assert refused(reader, creating(claim)) == f'persistentvolumeclaims "data" is forbidden: {words}'


def test_ranges_of_other_namespaces_and_dropped_ones_do_not_count() -> None:
    reader = world()
    elsewhere = limit_range(per(max={GPU: "1"}))
    elsewhere["metadata"]["namespace"] = "other"
    here = limit_range(per(max={GPU: "1"}))
    reader.put(elsewhere, here)
    big = pod("x", container("c", {GPU: "2"}, {GPU: "2"}))
    plugins = builtin_plugins(reader)
    with pytest.raises(ApiError):
        plugins.validate(creating(big))
    reader.drop(here)
    write = creating(big)
    plugins.mutate(write)
    plugins.validate(write)


def test_a_running_pod_is_not_measured_again_until_it_is_resized() -> None:
    reader = world(limit_range(per(max={"cpu": "1"})))
    old = pod("x", container("c", {"cpu": "1"}, {"cpu": "1"}))
    new = pod("x", container("c", {"cpu": "2"}, {"cpu": "2"}))
    admitted(reader, updating(old, new, "status"))
    assert "but limit is 2" in refused(reader, updating(old, new, "resize"))


def test_a_limit_below_the_minimum_and_a_request_above_the_maximum_are_told_apart() -> None:
    low = world(limit_range(per(min={"cpu": "1"})))
    assert "minimum cpu usage per Container is 1, but limit is 500m" in refused(
        low, creating(pod("x", container("c", {"cpu": "1"}, {"cpu": "500m"})))
    )
    high = world(limit_range(per(max={"cpu": "1"})))
    assert "maximum cpu usage per Container is 1, but request is 2" in refused(
        high, creating(pod("x", container("c", {"cpu": "2"}, {"cpu": "1"})))
    )


def test_sidecars_add_up_with_the_init_containers_after_them() -> None:
    reader = world(limit_range(per("Pod", max={"cpu": "2"})))
    sidecar = {**container("s", {"cpu": "1"}, {"cpu": "1"}), "restartPolicy": "Always"}
    load = container("load", {"cpu": "1500m"}, {"cpu": "1500m"})
    none = container("c", {"cpu": "1m"}, {"cpu": "1m"})
    admitted(reader, creating(pod("x", none, initContainers=[load, sidecar])))
    assert "but limit is 2500m" in refused(reader, creating(pod("x", none, initContainers=[sidecar, load])))


def test_what_is_going_away_is_not_measured() -> None:
    reader = world(limit_range(per("PersistentVolumeClaim", max={"storage": "1Gi"})))
    old = named("PersistentVolumeClaim", "data", spec={"resources": {"requests": {"storage": "2Gi"}}})
    assert "but request is 2Gi" in refused(reader, updating(old, old))
    going = {**old, "metadata": {**old["metadata"], "deletionTimestamp": "2026-11-21T10:00:00Z"}}
    plugins = builtin_plugins(reader)
    plugins.validate(updating(going, {**old, "metadata": {**going["metadata"], "finalizers": []}}))


def test_a_range_that_says_nothing_bounds_nothing() -> None:
    bounded = admitted(world(named("LimitRange", "empty")), creating(pod("x")))
    assert bounded == admitted(world(), creating(pod("x")))
    told = world(limit_range(per(default={"nvidia.com/gpu": "1"})))
    assert bounded != admitted(told, creating(pod("x")))
