"""How many pods a controller has yet to create, and whose Events say why it cannot."""

from __future__ import annotations

import json

import pytest

from build.manifests import job, replicas
from shoal.api.decode import read
from shoal.cli.missing_pods import missing_by_spec, pod_of_template, replica_sets_of


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_controller_lacks_the_replicas_that_do_not_exist(kind: str) -> None:
    (found,) = read(json.dumps(replicas(kind, "t/web", 4, 2)))
    assert missing_by_spec(found.value, 2) == 2
    assert missing_by_spec(found.value, 5) == 0
    template = pod_of_template(found.value)
    assert template is not None
    assert template.spec.containers[0].resources.limits["nvidia.com/gpu"].value() == 2


def test_a_job_lacks_what_it_has_neither_running_nor_succeeded() -> None:
    made = job("t/train", 4, 1)
    made["status"] = {"succeeded": 1}
    (found,) = read(json.dumps(made))
    assert missing_by_spec(found.value, 1) == 2


def test_the_replica_sets_of_a_deployment_are_those_that_it_controls() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    own, other = replicas("ReplicaSet", "t/web-1", 1), replicas("ReplicaSet", "t/other", 1)
    elsewhere = replicas("ReplicaSet", "u/web-1", 1)
    for each in (own, elsewhere):
        each["metadata"]["ownerReferences"] = [owner]
    documents = [document for each in (own, other, elsewhere) for document in read(json.dumps(each))]
    assert list(replica_sets_of(documents, "t/web")) == ["t/web-1"]
