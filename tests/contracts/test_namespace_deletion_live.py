"""A deleted namespace is emptied, says what keeps it, and goes."""

from __future__ import annotations

import pytest

from build.api_objects import HELD, let_go, make_configmap, make_pod, make_secret
from build.cluster_api import Api
from build.live_waits import NAMESPACE_ENDS_S, conditions, until, until_gone
from build.live_workloads import own_node, workload

pytestmark = pytest.mark.needs("controllers")


def at(api: Api) -> str:
    return f"/api/v1/namespaces/{api.namespace}"


async def test_all_that_is_in_it_goes_and_then_itself(api: Api) -> None:
    await make_configmap(api, "map")
    await make_secret(api, "secret")
    (await api.post(api.group("apps/v1", "deployments"), workload("Deployment", replicas=2))).ok(201)
    (await api.delete(at(api))).ok()
    await until_gone(api, at(api), within_s=NAMESPACE_ENDS_S)
    for path in (api.core("configmaps"), api.core("pods"), api.group("apps/v1", "deployments")):
        assert (await api.get(path)).ok()["items"] == []


async def test_finalizers_that_keep_it_are_named_in_its_conditions(api: Api) -> None:
    await make_configmap(api, "one", finalizers=[HELD])
    await make_configmap(api, "two", finalizers=[HELD])
    (await api.delete(at(api))).ok()
    # The ConfigMap of the root's certificate may be counted at first, while it goes.
    counted = "configmaps. has 2 resource instances"
    found = await until(
        api,
        at(api),
        lambda one: counted in conditions(one).get("NamespaceContentRemaining", ("", "", ""))[2],
        within_s=NAMESPACE_ENDS_S,
    )
    assert found["status"]["phase"] == "Terminating"
    told = conditions(found)
    assert told["NamespaceDeletionDiscoveryFailure"][:2] == ("False", "ResourcesDiscovered")
    assert told["NamespaceDeletionGroupVersionParsingFailure"] == (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    )
    assert told["NamespaceDeletionContentFailure"] == (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    )
    assert told["NamespaceContentRemaining"][:2] == ("True", "SomeResourcesRemain")
    assert told["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {HELD} in 2 resource instances",
    )
    await let_go(api, api.core("configmaps", "one"))
    await let_go(api, api.core("configmaps", "two"))
    await until_gone(api, at(api), within_s=NAMESPACE_ENDS_S)


async def test_a_finalizer_of_its_own_keeps_it_when_it_is_empty(api: Api) -> None:
    (await api.patch(at(api), {"metadata": {"finalizers": [HELD]}})).ok()
    (await api.delete(at(api))).ok()
    left = await until(api, at(api), lambda one: not one["spec"].get("finalizers"), within_s=NAMESPACE_ENDS_S)
    assert left["status"]["phase"] == "Terminating"
    assert (await api.get(api.core("serviceaccounts"))).ok()["items"] == []
    await let_go(api, at(api))
    await until_gone(api, at(api), within_s=NAMESPACE_ENDS_S)


async def test_pods_may_end_in_peace(api: Api) -> None:
    async with own_node(api) as node:
        await make_pod(api, "slow", nodeName=node, terminationGracePeriodSeconds=600)
        (await api.delete(at(api))).ok()
        going = await until(api, api.core("pods", "slow"), lambda one: "deletionTimestamp" in one["metadata"])
        assert going["metadata"]["deletionGracePeriodSeconds"] == 600
        await until(api, at(api), lambda one: "NamespaceContentRemaining" in conditions(one), within_s=NAMESPACE_ENDS_S)
        (await api.delete(api.core("pods", "slow"), gracePeriodSeconds=0)).ok()
