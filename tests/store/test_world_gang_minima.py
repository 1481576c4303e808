"""How many pods of a controller's gang must start together, from manifests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from build.manifests import Object, job, pod, thing, volcano_group
from shoal.api.decode import read
from shoal.engine.events import GroupSeen, PodArrived
from shoal.store.manifest_cluster import ManifestCluster, manifest_cluster_of
from shoal.units.errors import UserError

GANG = {"shoal.dev/gang": "true"}


def world(*objects: Object) -> ManifestCluster:
    return manifest_cluster_of(read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "w.json"))


def minima(*objects: Object) -> dict[str, int]:
    return {event.group.name: event.group.minimum for event in world(*objects).events if isinstance(event, GroupSeen)}


def owned(name: str, owner: str, **more: Any) -> Object:
    return pod(name, meta={"ownerReferences": [{"kind": "Job", "name": owner, "uid": "u", "controller": True}]}, **more)


def test_a_job_written_by_hand_is_a_gang_of_the_pods_it_would_make() -> None:
    made = world(job("j", 3, annotations=GANG))
    assert [event.who.group for event in made.events if isinstance(event, PodArrived)] == ["default/j"] * 3
    assert minima(job("j", 3, annotations=GANG)) == {"default/j": 3}


def test_of_a_job_in_a_cluster_the_specification_counts_and_not_the_pods_that_are_there() -> None:
    made = world(job("j", 3, annotations=GANG), owned("j-0", "j"))
    assert "needs 3 pods, and only 1 of its pods exist" in "\n".join(made.warnings)


@pytest.mark.parametrize(("phase", "needed"), [("Succeeded", 2), ("Failed", 3)])
def test_a_gang_needs_one_less_for_each_pod_that_succeeded(phase: str, needed: int) -> None:
    words = {"scheduling.k8s.io/group-name": "train"}
    pods = [pod(name, annotations=words) for name in "bc"]
    ended = pod("a", annotations=words, on="n1", status={"phase": phase})
    assert minima(volcano_group("train", 3), ended, *pods) == {"default/train": needed}


def test_roles_are_less_by_their_own_pods() -> None:
    words = {"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker"}
    ended = pod("a", annotations=words, on="n1", status={"phase": "Succeeded"})
    group = volcano_group("train", 3, minTaskMember={"worker": 2, "master": 1})
    (seen,) = [event for event in world(group, ended).events if isinstance(event, GroupSeen)]
    assert (seen.group.minimum, seen.group.roles) == (2, (("master", 1), ("worker", 1)))


def test_a_job_set_is_a_gang_of_all_its_jobs() -> None:
    template = {"spec": {"parallelism": 2, "template": {"spec": {"containers": []}}}}
    made = thing("jobset.x-k8s.io/v1alpha2", "JobSet", "s", spec={"replicatedJobs": [{"name": "w", "replicas": 2}]})
    made["spec"]["replicatedJobs"][0]["template"] = template
    made["metadata"]["annotations"] = GANG
    child = job("s-w-0", 2)
    child["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "s", "uid": "u", "controller": True}]
    assert minima(made, child, owned("s-w-0-0", "s-w-0")) == {"default/s": 4}


def test_a_word_that_says_nothing_is_refused_with_its_place() -> None:
    with pytest.raises(UserError, match=r"shoal\.dev/gang.*expected true, false or a number of pods"):
        world(job("j", 2, annotations={"shoal.dev/gang": "yes"}))
