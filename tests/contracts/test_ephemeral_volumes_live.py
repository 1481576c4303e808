"""Pods with volumes of their own: a claim comes with the pod and goes with it."""

from __future__ import annotations

import pytest

from build.api_objects import make_pod
from build.cluster_api import Api, Obj
from build.live_waits import until, until_gone, until_said

pytestmark = pytest.mark.needs("controllers")
SPEC: Obj = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "example-no-such-class",
    "resources": {"requests": {"storage": "1Gi"}},
}


async def make_user(api: Api) -> Obj:
    template = {"metadata": {"labels": {"team": "a"}}, "spec": SPEC}
    return await make_pod(api, "user", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])


def at(api: Api) -> str:
    return api.core("persistentvolumeclaims", "user-scratch")


async def test_a_claim_is_made_for_a_volume_of_the_pods_own_and_goes_with_it(api: Api) -> None:
    pod = await make_user(api)
    claim = await until(api, at(api), bool)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)
    assert claim["metadata"]["labels"] == {"team": "a"}
    assert claim["spec"]["resources"] == SPEC["resources"]
    await api.delete(api.core("pods", "user"))
    await until_gone(api, at(api))


async def test_a_claim_that_was_there_before_is_not_taken(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "user-scratch"}, "spec": SPEC}
    (await api.post(api.core("persistentvolumeclaims"), body)).ok(201)
    await make_user(api)
    (event, *_) = await until_said(api, "user", "FailedBinding")
    place = api.namespace
    words = f"PVC {place}/user-scratch was not created for pod {place}/user (pod is not owner)"
    assert event["message"] == f"ephemeral volume scratch: {words}"
