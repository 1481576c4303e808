"""LimitRanges, ResourceQuotas and PriorityClasses of manifests: what an API server would set, refuse and count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, job, node, pod, priority_class, replicas, thing
from shoal.api.decode import read
from shoal.engine.events import PodArrived
from shoal.store.held_pods import HeldPod
from shoal.store.manifest_cluster import ManifestCluster, manifest_cluster_of

GPU = "requests.nvidia.com/gpu"


def quota(name: str, hard: Object, status: Object | None = None, **spec: Any) -> Object:
    return thing("v1", "ResourceQuota", name, spec={"hard": hard, **spec}, **({"status": status} if status else {}))


def limit_range(name: str, *limits: Object) -> Object:
    return thing("v1", "LimitRange", name, spec={"limits": list(limits)})


def cluster_of(*objects: Object) -> ManifestCluster:
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("n", 64), *objects]}
    return manifest_cluster_of(read(json.dumps(listed)))


def refused(*objects: Object) -> dict[str, str]:
    return {key: hold.message for key, hold in cluster_of(*objects).gated.items() if isinstance(hold, HeldPod)}


def requests(*objects: Object) -> dict[str, dict[str, int]]:
    return {e.key: dict(e.ask.requests) for e in cluster_of(*objects).events if isinstance(e, PodArrived)}


def test_pods_beyond_a_quota_are_refused_in_the_order_of_their_creation() -> None:
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    pods = (pod("t/a", 4), pod("t/b", 4), pod("t/old", 2, meta=created), pod("u/c", 8))
    found = refused(quota("t/gpus", {GPU: 8}), *pods)
    assert found == {
        "t/b": 'pods "b" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=4, '
        "used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8"
    }


def test_a_refused_pod_uses_nothing() -> None:
    assert list(refused(quota("t/gpus", {GPU: 8}), pod("t/a", 6), pod("t/b", 4), pod("t/c", 2))) == ["t/b"]


def test_pods_that_exist_are_counted_and_never_refused() -> None:
    found = refused(
        quota("t/gpus", {GPU: 8}),
        pod("t/running", 6, on="n"),
        pod("t/pending", 4, meta={"uid": "1"}),
        pod("t/done", 8, on="n", status={"phase": "Succeeded"}),
        pod("t/new", 1),
    )
    assert found == {
        "t/new": 'pods "new" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, '
        "used: requests.nvidia.com/gpu=10, limited: requests.nvidia.com/gpu=8"
    }


def test_the_use_that_a_quota_states_counts_instead_of_the_pods_among_the_manifests() -> None:
    status = {"hard": {GPU: "8"}, "used": {GPU: "7"}}
    objects = (pod("t/running", 1, on="n"), pod("t/a", 1), pod("t/b", 1))
    assert list(refused(quota("t/q", {GPU: 8}, status), *objects)) == ["t/b"]
    assert refused(quota("t/q", {GPU: 8}, {"hard": {GPU: "9"}, "used": {GPU: "7"}}), *objects) == {}


QUOTAS: dict[str, tuple[Object, Object, str]] = {
    "MIG instances": (
        {"requests.nvidia.com/mig-1g.10gb": 1},
        pod("t/x", limits={"nvidia.com/mig-1g.10gb": 2}),
        "requested: requests.nvidia.com/mig-1g.10gb=2, used: requests.nvidia.com/mig-1g.10gb=0",
    ),
    "cpu": ({"requests.cpu": 2}, pod("t/x", limits={"cpu": 3}), "requested: requests.cpu=3, used: requests.cpu=0"),
    "memory": ({"limits.memory": "1Gi"}, pod("t/x", limits={"memory": "2Gi"}), "requested: limits.memory=2Gi"),
    "pods": ({"pods": 0}, pod("t/x"), "requested: pods=1, used: pods=0, limited: pods=0"),
    "pods by count": ({"count/pods": 0}, pod("t/x"), "requested: count/pods=1"),
    "parts of GPUs": (
        {GPU: 0},
        pod("t/x", annotations={"gpu-fraction": "0.5"}),
        "requested: requests.nvidia.com/gpu=1",
    ),
}


@pytest.mark.parametrize(("hard", "wanted", "words"), QUOTAS.values(), ids=QUOTAS)
def test_a_quota_counts(hard: Object, wanted: Object, words: str) -> None:
    assert words in refused(quota("t/q", hard), wanted)["t/x"]


def test_a_quota_on_cpu_needs_requests() -> None:
    assert refused(quota("t/q", {"requests.cpu": 9}), pod("t/x", 1)) == {
        "t/x": 'pods "x" is forbidden: failed quota: q: must specify requests.cpu for: c'
    }


def test_a_quota_for_a_priority_class_counts_pods_of_that_class_alone() -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    classes = [priority_class("high", 100), priority_class("low", 1)]
    found = refused(
        quota("t/q", {GPU: 1}, scopeSelector=selector),
        *classes,
        pod("t/a", 2, priorityClassName="high"),
        pod("t/b", 2, priorityClassName="low"),
        pod("t/c", 2),
    )
    assert list(found) == ["t/a"]


def test_a_quota_with_a_scope_counts_pods_with_a_deadline_alone() -> None:
    found = refused(quota("t/q", {"pods": 0}, scopes=["Terminating"]), pod("t/a", activeDeadlineSeconds=9), pod("t/b"))
    assert list(found) == ["t/a"]


def test_pods_of_a_controller_are_refused_one_by_one() -> None:
    assert list(refused(quota("t/q", {GPU: 4}), job("t/train", 3, 2))) == ["t/train-2"]


def test_a_controller_that_a_quota_refuses_makes_no_pods() -> None:
    found = refused(
        quota("t/q", {"count/jobs.batch": 1}), job("t/a", 1), job("t/b", 2), replicas("Deployment", "t/c", 1)
    )
    assert found == dict.fromkeys(
        ["t/b-0", "t/b-1"],
        'jobs.batch "b" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, '
        "limited: count/jobs.batch=1",
    )


def test_a_limit_range_sets_what_containers_do_not_say() -> None:
    limits = limit_range("t/defaults", {"type": "Container", "default": {"cpu": 4}, "defaultRequest": {"cpu": 2}})
    found = requests(limits, pod("t/a"), pod("t/b", limits={"cpu": 3}), pod("u/c"))
    assert found["t/a"]["cpu"] == 2000
    assert found["t/b"]["cpu"] == 3000
    assert found["u/c"].get("cpu", 0) == 0


@pytest.mark.parametrize(
    ("item", "limits", "asked"),
    [
        ({"max": {"memory": "1Gi"}}, {"memory": "1Gi"}, {"memory": "1Gi"}),
        ({"default": {"cpu": 2}, "min": {"cpu": 1}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"min": {"cpu": 1}}, {}, {"cpu": "1"}),
        ({"max": {"cpu": 4}, "default": {"cpu": 3}, "defaultRequest": {"cpu": 2}}, {"cpu": "3"}, {"cpu": "2"}),
    ],
)
def test_a_bound_of_containers_is_a_default_too_where_none_is_given(
    item: Object, limits: Object, asked: Object
) -> None:
    objects = (limit_range("t/r", {"type": "Container", **item}), pod("t/a"))
    assert refused(*objects) == {}
    given = pod("t/a", limits=limits)
    given["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": asked}
    assert requests(*objects) == requests(given)


def test_a_quota_counts_what_a_limit_range_set() -> None:
    limits = limit_range("t/defaults", {"type": "Container", "defaultRequest": {"cpu": 2}})
    assert list(refused(limits, quota("t/q", {"requests.cpu": 3}), pod("t/a"), pod("t/b"))) == ["t/b"]


BOUNDS: dict[str, tuple[Object, Object, str]] = {
    "a maximum": (
        {"type": "Container", "max": {"nvidia.com/gpu": 4}},
        {"nvidia.com/gpu": 8},
        "maximum nvidia.com/gpu usage per Container is 4, but limit is 8",
    ),
    "a minimum": (
        {"type": "Container", "min": {"cpu": 1}},
        {"cpu": "500m"},
        "minimum cpu usage per Container is 1, but request is 500m",
    ),
    "a maximum of the pod": (
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"memory": "2Gi"},
        "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
    ),
}


@pytest.mark.parametrize(("bounds", "amounts", "words"), BOUNDS.values(), ids=BOUNDS)
def test_a_limit_range_refuses(bounds: Object, amounts: Object, words: str) -> None:
    assert refused(limit_range("t/r", bounds), pod("t/x", limits=amounts)) == {"t/x": f'pods "x" is forbidden: {words}'}


def test_a_limit_range_refuses_a_limit_far_above_the_request() -> None:
    wanted = pod("t/x")
    wanted["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 4}, "requests": {"cpu": 1}}
    bounds = limit_range("t/r", {"type": "Container", "maxLimitRequestRatio": {"cpu": 2}})
    words = "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"
    assert refused(bounds, wanted) == {"t/x": f'pods "x" is forbidden: {words}'}


def test_an_unknown_priority_class_is_refused_as_the_api_server_does() -> None:
    objects = (priority_class("high", 100), pod("t/a", priorityClassName="high"), pod("t/b", priorityClassName="hihg"))
    assert refused(*objects) == {"t/b": 'pods "b" is forbidden: no PriorityClass with name hihg was found'}
    system = pod("t/c", priorityClassName="system-node-critical")
    assert refused(system) == {}


def test_the_command_lists_refused_pods_with_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from shoal.cli.main import main

    path = as_file(tmp_path, node("n", 8), quota("t/q", {GPU: 1}), pod("t/a", 1), pod("t/b", 1))
    assert main(["decide", "-f", path, "-o", "json"]) == 0
    last = json.loads(capsys.readouterr().out)["rounds"][-1]
    (waiting,) = last["refused"]
    assert (waiting["pod"], waiting["reason"]["code"]) == ("t/b", "Forbidden")
    assert main(["why", "t/b", "-f", path]) == 0
    assert "ResourceQuota q would be exceeded: 1 of 1 requests.nvidia.com/gpu used" in " ".join(
        capsys.readouterr().out.split()
    )
