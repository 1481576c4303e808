"""Quota: what pods count, when it is too much, and that the running total is what counting gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.charging import charged, quota, refused
from build.cluster_reader import Obj, admission, container, creating, deleting, pod, updating, world
from build.depth import examples
from shoal.embedded.apiserver.admission.quota.plugin import Quota
from shoal.embedded.apiserver.status import ApiError

GPU = "nvidia.com/gpu"


def gpus(name: str, count: int = 1, **spec: object) -> Obj:
    return pod(name, container("c", {GPU: str(count)}, {GPU: str(count)}), **spec)


def test_a_pod_too_many_is_refused_in_kubernetes_words() -> None:
    reader = world(quota({"pods": "1"}))
    assert charged(reader, creating(pod("a"))) == {"pods": "1"}
    assert refused(reader, creating(pod("b"))) == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )


def test_only_what_is_exceeded_is_named() -> None:
    reader = world(quota({"requests.cpu": "4", "requests.memory": "1Gi", "pods": "10"}))
    made = creating(pod("a", container("c", {"cpu": "3", "memory": "512Mi"})))
    assert charged(reader, made) == {"pods": "1", "requests.cpu": "3", "requests.memory": "512Mi"}
    big = creating(pod("b", container("c", {"cpu": "1500m", "memory": "1Gi"})))
    assert refused(reader, big) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=1500m,requests.memory=1Gi, '
        "used: requests.cpu=3,requests.memory=512Mi, limited: requests.cpu=4,requests.memory=1Gi"
    )


def test_extended_resources_count_through_requests_alone() -> None:
    reader = world(quota({f"requests.{GPU}": "4", f"limits.{GPU}": "4"}))
    assert charged(reader, creating(gpus("a", 3))) == {f"requests.{GPU}": "3"}
    assert refused(reader, creating(gpus("b", 2))) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: '
        "requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
    )
    only_limits = world(quota({f"limits.{GPU}": "1"}))
    assert charged(only_limits, creating(gpus("a", 8))) == {}


@pytest.mark.parametrize(
    ("annotations", "devices"),
    [
        ({"gpu-fraction": "0.01", "gpu-fraction-num-devices": "8"}, 8),
        ({"gpu-fraction": "0.01", "gpu-fraction-num-devices": "0000000008"}, 8),
        ({"gpu-fraction": "0.5"}, 1),
        ({"gpu-memory": "1000", "gpu-fraction-num-devices": "2"}, 2),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "many"}, 1),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "9" * 5000}, 1),
        ({"gpu-fraction-num-devices": "8"}, 0),
    ],
)
def test_parts_of_gpus_by_annotation_count_as_the_devices_that_they_are_of(
    annotations: dict[str, str], devices: int
) -> None:
    made = pod("a", container("c"))
    made["metadata"]["annotations"] = annotations
    expected = {f"requests.{GPU}": str(devices)} if devices else {}
    assert charged(world(quota({f"requests.{GPU}": "8"})), creating(made)) == expected


def test_parts_of_gpus_count_beside_whole_ones() -> None:
    reader = world(quota({f"requests.{GPU}": "4"}))
    assert charged(reader, creating(gpus("a", 3))) == {f"requests.{GPU}": "3"}
    made = pod("b", container("c"))
    made["metadata"]["annotations"] = {"gpu-fraction": "0.01", "gpu-fraction-num-devices": "2"}
    assert refused(reader, creating(made)) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: '
        "requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
    )


def test_memory_and_cores_of_gpus_count_as_one_device_for_each_container() -> None:
    memory, cores = "nvidia.com/gpumem", "nvidia.com/gpucores"
    parts = [
        container("a", {}, {memory: "1000"}),
        container("b", {}, {cores: "10"}),
        container("c", {GPU: "1"}, {GPU: "1"}),
    ]
    assert charged(world(quota({f"requests.{GPU}": "8"})), creating(pod("a", *parts)))[f"requests.{GPU}"] == "3"


MEMORY = "nvidia.com/gpumem"
SHARING, COUNT = {"gpu-fraction": "0.01"}, "gpu-fraction-num-devices"
NO_GPU_NUMBER = container("c", {}, {GPU: "0", MEMORY: "1000"})


def part(name: str, **more: object) -> Obj:
    return {**container(name, {}, {MEMORY: "1000"}), **more}


@pytest.mark.parametrize(
    ("containers", "init", "devices"),
    [
        pytest.param([container("c")], [part("i")], 1, id="an init container"),
        pytest.param([container("c")], [part("i"), part("j")], 1, id="init containers run one after the other"),
        pytest.param([part("c")], [part("i")], 1, id="an init container runs before the others"),
        pytest.param([part("c")], [part("s", restartPolicy="Always")], 2, id="a sidecar stays beside the others"),
        pytest.param(
            [container("c")],
            [part("s", restartPolicy="Always"), part("i")],
            2,
            id="an init container runs beside the sidecars that were started before it",
        ),
        pytest.param([part("a"), part("b"), part("c")], [], 3, id="containers run side by side"),
        pytest.param([NO_GPU_NUMBER], [], 1, id="no whole GPU and a part of one"),
        pytest.param([container("c", {}, {MEMORY: "0"})], [], 0, id="no part"),
        pytest.param(
            [container("c", {GPU: "1"}, {GPU: "1"})],
            [part("s", restartPolicy="Always"), container("i", {GPU: "4"}, {GPU: "4"})],
            5,
            id="whole GPUs of an init container beside the part of a sidecar",
        ),
    ],
)
def test_parts_of_gpus_of_all_containers_count_as_their_whole_gpus_would(
    containers: list[Obj], init: list[Obj], devices: int
) -> None:
    made = pod("a", *containers, initContainers=init)
    expected = {f"requests.{GPU}": str(devices)} if devices else {}
    found = charged(world(quota({f"requests.{GPU}": "8"})), creating(made))
    assert {name: amount for name, amount in found.items() if amount != "0"} == expected


def sharing(devices: int) -> Obj:
    made = pod("a", container("c"))
    return {**made, "metadata": {**made["metadata"], "annotations": SHARING | {COUNT: str(devices)}}}


@pytest.mark.parametrize("subresource", ["", "status"])
def test_an_annotation_that_asks_for_more_devices_later_is_charged_and_refused_beyond_the_quota(
    subresource: str,
) -> None:
    reader = world(quota({f"requests.{GPU}": "4"}))
    charged(reader, creating(sharing(2)))
    assert charged(reader, updating(sharing(2), sharing(3), subresource)) == {f"requests.{GPU}": "3"}
    assert refused(reader, updating(sharing(3), sharing(5), subresource)) == (
        'pods "a" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: '
        "requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
    )


def test_an_annotation_that_asks_for_fewer_devices_later_gives_them_back() -> None:
    reader = world(quota({f"requests.{GPU}": "4"}))
    charged(reader, creating(sharing(4)))
    assert charged(reader, updating(sharing(4), sharing(1))) == {f"requests.{GPU}": "1"}
    assert charged(reader, updating(sharing(1), pod("a", container("c")))) == {f"requests.{GPU}": "0"}


def test_a_pod_that_ends_while_its_annotation_asks_for_more_is_not_refused() -> None:
    reader = world(quota({f"requests.{GPU}": "4"}))
    charged(reader, creating(sharing(4)))
    ended = {**sharing(8), "status": {"phase": "Failed"}}
    assert charged(reader, updating(sharing(4), ended, "status")) == {f"requests.{GPU}": "0"}


def test_every_container_must_say_what_a_quota_on_cpu_or_memory_counts() -> None:
    reader = world(quota({"limits.cpu": "4", "requests.memory": "1Gi", f"requests.{GPU}": "1"}))
    silent = creating(pod("x", container("b"), container("a", {"memory": "1Mi"}), initContainers=[container("i")]))
    assert refused(reader, silent) == (
        'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: a,b,i; requests.memory for: b,i'
    )


def test_a_pod_that_speaks_for_its_containers_may_leave_them_silent() -> None:
    reader = world(quota({"limits.cpu": "4", "requests.cpu": "4"}))
    made = pod("x", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})
    assert charged(reader, creating(made)) == {"limits.cpu": "2", "requests.cpu": "1"}


@pytest.mark.parametrize(
    ("spec", "made", "counts"),
    [
        ({"scopes": ["BestEffort"]}, pod("x"), True),
        ({"scopes": ["BestEffort"]}, gpus("x"), True),
        ({"scopes": ["NotBestEffort"]}, pod("x", container("c", {"cpu": "1"})), True),
        ({"scopes": ["NotBestEffort"]}, pod("x"), False),
        ({"scopes": ["Terminating"]}, pod("x", activeDeadlineSeconds=0), True),
        ({"scopes": ["NotTerminating"]}, pod("x", activeDeadlineSeconds=9), False),
        ({"scopes": ["Terminating", "BestEffort"]}, pod("x"), False),
        ({"scopes": ["PriorityClass"]}, pod("x", priorityClassName="high"), True),
        ({"scopes": ["PriorityClass"]}, pod("x"), False),
        ({"operator": "In", "values": ["high"]}, pod("x", priorityClassName="high"), True),
        ({"operator": "In", "values": ["high"]}, pod("x"), False),
        ({"operator": "NotIn", "values": ["high"]}, pod("x"), True),
        ({"operator": "NotIn", "values": ["high"]}, pod("x", priorityClassName="high"), False),
        ({"operator": "DoesNotExist"}, pod("x"), True),
        ({"operator": "Exists"}, pod("x"), False),
    ],
)
def test_a_scope_says_which_pods_count(spec: Obj, made: Obj, counts: bool) -> None:
    if "operator" in spec:
        spec = {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", **spec}]}}
    assert charged(world(quota({"pods": "9"}, **spec)), creating(made)) == ({"pods": "1"} if counts else {})


def test_affinity_to_other_namespaces_can_be_forbidden_by_a_quota_of_none() -> None:
    reader = world(quota({"pods": "0"}, scopes=["CrossNamespacePodAffinity"]))
    term = {"topologyKey": "zone", "namespaceSelector": {}}
    rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0" in refused(
        reader, creating(pod("x", affinity=rule))
    )
    assert charged(reader, creating(pod("y"))) == {}


def test_a_pod_that_ended_gives_its_compute_back_and_still_is_an_object() -> None:
    reader = world(quota({"pods": "2", "count/pods": "2", f"requests.{GPU}": "4"}))
    running = gpus("a", 4)
    charged(reader, creating(running))
    done = {**running, "status": {"phase": "Succeeded"}}
    assert charged(reader, updating(running, done, "status")) == {
        "count/pods": "1",
        "pods": "0",
        f"requests.{GPU}": "0",
    }
    assert charged(reader, deleting(done), gone=True) == {"count/pods": "0", "pods": "0", f"requests.{GPU}": "0"}


def test_a_deletion_that_only_begins_gives_nothing_back() -> None:
    reader = world(quota({"pods": "2"}))
    made = pod("a")
    charged(reader, creating(made))
    assert Quota(reader).refs(deleting(made)) == []
    assert Quota(reader).charges(deleting(made)) == []


def test_a_change_that_cannot_count_locks_nothing() -> None:
    reader = world(quota({"pods": "2"}))
    old = pod("a")
    assert Quota(reader).refs(updating(old, {**old, "status": {"phase": "Running"}}, "status")) == []
    assert [ref.name for ref in Quota(reader).refs(creating(old))] == ["q"]
    assert Quota(world()).refs(creating(old)) == []


def test_a_quota_whose_status_is_not_of_its_spec_is_counted_on_the_spot() -> None:
    reader = world(pod("a"), pod("b"), quota({"pods": "3"}))
    assert charged(reader, creating(pod("c"))) == {"pods": "3"}
    changed = reader.get("", "resourcequotas", "ml", "q")
    assert changed is not None
    reader.put({**changed, "spec": {"hard": {"pods": "5", "count/pods": "5"}}})
    assert charged(reader, creating(pod("d"))) == {"pods": "4", "count/pods": "4"}


def test_a_new_quota_is_counted_and_a_name_nothing_counts_against_stays_out() -> None:
    reader = world(gpus("a", 2))
    made = quota({f"requests.{GPU}": "4", f"limits.{GPU}": "4", "secrets": "3"})
    assert Quota(reader).counted(made).used == {f"requests.{GPU}": "2", "secrets": "0"}


def test_two_quotas_are_charged_together_or_not_at_all() -> None:
    reader = world(quota({"pods": "5"}), quota({f"requests.{GPU}": "1"}, name="gpu"))
    assert len(Quota(reader).charges(creating(gpus("a")))) == 2
    assert "exceeded quota: gpu" in refused(reader, creating(gpus("b", 2)))


def test_a_resized_pod_is_charged_the_difference() -> None:
    reader = world(quota({"requests.cpu": "3"}))
    old, new = (pod("a", container("c", {"cpu": cpu})) for cpu in ("1", "2500m"))
    charged(reader, creating(old))
    assert charged(reader, admission("UPDATE", new, old, "resize")) == {"requests.cpu": "2500m"}
    assert charged(reader, admission("UPDATE", old, new, "resize")) == {"requests.cpu": "1"}


def test_a_status_written_by_hand_never_makes_used_negative() -> None:
    made = quota({"pods": "2"})
    reader = world(pod("a"), {**made, "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}})
    assert charged(reader, deleting(pod("a")), gone=True) == {"pods": "0"}


def test_overhead_counts_and_gives_no_limit_to_a_pod_without_one() -> None:
    made = pod("x", container("c", {"cpu": "1"}, {"cpu": "2"}), overhead={"cpu": "250m", "memory": "1Mi"})
    reader = world(quota({"requests.cpu": "9", "limits.cpu": "9", "requests.ephemeral-storage": "1Gi"}))
    assert charged(reader, creating(made)) == {
        "limits.cpu": "2250m",
        "requests.cpu": "1250m",
        "requests.ephemeral-storage": "0",
    }
    only_requests = world(quota({"limits.ephemeral-storage": "1Gi"}))
    light = pod("x", container("c"), overhead={"ephemeral-storage": "1Mi"})
    assert charged(only_requests, creating(light)) == {}


STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "end", "delete"]), st.integers(0, 5), st.integers(0, 3)), max_size=30
)


@settings(max_examples=examples(30), deadline=None)
@given(steps=STEPS)
def test_the_running_total_is_what_counting_gives_and_never_more_than_allowed(
    steps: list[tuple[str, int, int]],
) -> None:
    reader = world(quota({"pods": "4", "count/pods": "5", f"requests.{GPU}": "6", "requests.cpu": "2"}))
    for what, number, count in steps:
        name = f"p{number}"
        old = reader.get("", "pods", "ml", name)
        if what == "create" and old is None:
            requests = {"cpu": f"{count * 300}m", **({GPU: str(count)} if count else {})}
            write = creating(pod(name, container("c", requests)))
        elif what == "end" and old is not None:
            write = updating(old, {**old, "status": {"phase": "Failed"}}, "status")
        elif what == "delete" and old is not None:
            write = deleting(old)
        else:
            continue
        try:
            charged(reader, write, gone=what == "delete")
        except ApiError:
            continue
        assert Quota(reader).recount("ml") == []
        found = reader.get("", "resourcequotas", "ml", "q")
        assert found is not None
        assert int(found["status"]["used"]["pods"]) <= 4
        assert int(found["status"]["used"][f"requests.{GPU}"]) <= 6


def test_writes_that_are_charged_together_stand_on_each_other_and_a_refused_one_on_nothing() -> None:
    reader = world(quota({"pods": "3", f"requests.{GPU}": "3"}), quota({"pods": "9"}, name="wide"))
    charging = Quota(reader)
    accounts = charging.accounts("ml")
    charging.charge(accounts, creating(gpus("a", 2)))
    with pytest.raises(ApiError, match=r"requested: requests\.nvidia\.com/gpu=2, used: requests\.nvidia\.com/gpu=2"):
        charging.charge(accounts, creating(gpus("b", 2)))
    charging.charge(accounts, creating(pod("c")))
    charging.charge(accounts, deleting(gpus("a", 2)), gone=True)
    charging.charge(accounts, creating(gpus("d", 3)))
    assert {charge.ref.name: charge.used for charge in accounts.charges()} == {
        "q": {"pods": "2", f"requests.{GPU}": "3"},
        "wide": {"pods": "2"},
    }
    assert Quota(reader).charges(creating(pod("e")))[0].used["pods"] == "1"
