"""Device claims that pods get from templates, and that go with them."""

from __future__ import annotations

import pytest

from build.api_objects import make_pod
from build.cluster_api import Api, Obj
from build.live_waits import name_of, until, until_gone, until_items, until_said

pytestmark = pytest.mark.needs("controllers")
GROUP = "resource.k8s.io/v1"
SPEC: Obj = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}


async def make_template(api: Api) -> None:
    spec = {"metadata": {"labels": {"team": "a"}, "annotations": {"example.com/note": "b"}}, "spec": SPEC}
    body = {"apiVersion": GROUP, "kind": "ResourceClaimTemplate", "metadata": {"name": "one-gpu"}, "spec": spec}
    (await api.post(api.group(GROUP, "resourceclaimtemplates"), body)).ok(201)


async def make_user(api: Api, name: str = "pod") -> Obj:
    return await make_pod(api, name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}])


async def test_a_pod_gets_a_claim_of_its_own_and_learns_its_name(api: Api) -> None:
    await make_template(api)
    pod = await make_user(api)
    found = await until(api, api.core("pods", "pod"), lambda one: one["status"].get("resourceClaimStatuses"))
    (said,) = found["status"]["resourceClaimStatuses"]
    claim = (await api.get(api.group(GROUP, "resourceclaims", said["resourceClaimName"]))).ok()
    assert said["name"] == "gpu"
    assert name_of(claim).startswith("pod-gpu-")
    assert claim["metadata"]["annotations"] == {
        "example.com/note": "b",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
    assert claim["metadata"]["labels"] == {"team": "a"}
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)


async def test_two_pods_have_two_claims_and_each_goes_with_its_pod(api: Api) -> None:
    await make_template(api)
    for name in ("first", "second"):
        await make_user(api, name)
    claims = await until_items(api, api.group(GROUP, "resourceclaims"), lambda found: len(found) == 2)
    of_first = next(one for one in claims if one["metadata"]["ownerReferences"][0]["name"] == "first")
    await api.delete(api.core("pods", "first"), propagationPolicy="Background")
    await until_gone(api, api.group(GROUP, "resourceclaims", name_of(of_first)))
    assert len((await api.get(api.group(GROUP, "resourceclaims"))).ok()["items"]) == 1


async def test_a_missing_template_is_told_and_made_up_for(api: Api) -> None:
    await make_user(api)
    (event, *_) = await until_said(api, "pod", "FailedResourceClaimCreation")
    assert event["type"] == "Warning"
    assert 'resourceclaimtemplate.resource.k8s.io "one-gpu" not found' in event["message"]
    await make_template(api)
    await until_items(api, api.group(GROUP, "resourceclaims"), lambda found: len(found) == 1)
