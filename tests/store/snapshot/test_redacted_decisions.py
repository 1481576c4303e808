"""Who decides on a snapshot decides what would be decided on the cluster: redaction takes away nothing that counts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, job, kai_group, node, pod, priority_class, volcano_group
from build.queue_manifests import flavor
from shoal.api.decode import Document, read
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.sim.answers import answer
from shoal.store.snapshot.redaction import redacted
from shoal.views.decision import to_json

HIDDEN = "hunter2"
GROUP = "scheduling.k8s.io/group-name"

NODES: st.SearchStrategy[list[Object]] = st.lists(
    st.sampled_from(
        [
            {"gpus": 8, "labels": {"zone": "a"}},
            {"gpus": 4, "labels": {"zone": "b", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
            {"gpus": 4, "labels": {"nvidia.com/gpu.replicas": "2"}},
            {"gpus": 2, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            {"gpus": 1, "cpu": 2, "spec": {"unschedulable": True}},
        ]
    ),
    min_size=1,
    max_size=4,
)
ANNOTATIONS: st.SearchStrategy[dict[str, str]] = st.sampled_from(
    [{}, {"gpu-fraction": "0.5"}, {GROUP: "g"}, {"shoal.dev/last-checkpoint": "2026-01-01T00:00:00Z"}]
)
SPECS: st.SearchStrategy[Object] = st.sampled_from(
    [
        {},
        {"nodeSelector": {"zone": "a"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"priorityClassName": "high"},
        {"schedulingGates": [{"name": "x"}]},
        {"overhead": {"cpu": "1"}},
        {"preemptionPolicy": "Never"},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}}},
    ]
)  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn) -> list[Object]:
    described = draw(NODES)
    found = [node(f"n{at}", **each) for at, each in enumerate(described)]
    found += [priority_class("high", 100), draw(st.sampled_from([volcano_group("t/g", 2), kai_group("t/g", 2)]))]
    has_queues = draw(st.booleans())
    for at in range(draw(st.integers(1, 8))):
        annotations = dict(draw(ANNOTATIONS))
        wanted = 0 if "gpu-fraction" in annotations else draw(st.integers(0, 4))
        on = draw(st.sampled_from(["", "", f"n{draw(st.integers(0, len(described) - 1))}"]))
        spec = dict(draw(SPECS)) if not on else {}
        if has_queues:
            # Who yields to whom is decided by queues there.
            spec.pop("priorityClassName", None)
        found.append(pod(f"t/p{at}", wanted, on, {"app": f"a{at % 2}"}, annotations, **spec))
    if has_queues:
        found += [flavor(), *gpu_queue("a", gpus(8)), gpu_workload("a/held", 1, 2, "f"), gpu_job("a/j", 2, 3)]
    found.append(job("t/plain", draw(st.integers(1, 3)), 1))
    return found


def telling(value: Any) -> Any:
    """The same world with something to hide wherever people hide things."""
    if isinstance(value, list):
        return [telling(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: telling(each) for key, each in value.items()}
    if "name" in made and ("namespace" in made or "labels" in made):
        made["annotations"] = {**made.get("annotations", {}), "example.com/secret": HIDDEN}
        made["managedFields"] = [{"manager": HIDDEN}]
    if "containers" in made:
        hidden = {"env": [{"name": "TOKEN", "value": HIDDEN}], "args": [HIDDEN], "command": [HIDDEN]}
        made["containers"] = [{**each, **hidden} for each in made["containers"]]
        made["volumes"] = [{"name": "v", "secret": {"secretName": HIDDEN}}]
    return made


def decided(documents: list[Document]) -> str:
    loaded = loaded_of(documents)
    return to_json(answer(rounds_of(loaded, 42), loaded.manifests.gated))


def documents_of(objects: list[Object]) -> list[Document]:
    return read(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_a_redacted_world_decides_alike(objects: list[Object]) -> None:
    whole = [telling(each) for each in objects]
    given_away = [redacted(each) for each in whole]
    assert HIDDEN in json.dumps(whole)
    assert HIDDEN not in json.dumps(given_away)
    assert decided(documents_of(given_away)) == decided(documents_of(whole))
