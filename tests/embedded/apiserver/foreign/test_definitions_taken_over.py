"""The project's own definitions are applied over provided ones, with the command that the project documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.foreign_kinds import foreign_cluster
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.kind import DEFINITIONS, Kind
from shoal.client.port import Patch
from shoal.client.refusals import InvalidError, NotFoundError, RefusedError
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.wiring.foreign_kinds import provide_foreign

Obj = dict[str, Any]
NAME = "clusterqueues.kueue.x-k8s.io"
NEW = Kind("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", is_namespaced=False)
OLD = NEW._replace(version="v1beta1")
JOB_SETS = Kind("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")


def theirs(*versions: str, webhook: bool = False) -> Obj:
    """A definition as Kueue publishes it: the last of the versions is stored."""
    spec: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": spec}}}
    served = [
        {"name": one, "served": True, "storage": one == versions[-1], "schema": schema, "subresources": {"status": {}}}
        for one in versions
    ]
    names = {"kind": "ClusterQueue", "listKind": "ClusterQueueList", "plural": "clusterqueues", "shortNames": ["cq"]}
    found: Obj = {"group": "kueue.x-k8s.io", "names": names, "scope": "Cluster", "versions": served}
    if webhook:
        client = {"service": {"namespace": "kueue-system", "name": "kueue-webhook-service", "path": "/convert"}}
        found["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": "kueue"}},
        "spec": found,
    }


async def server_side_applied(cluster: SmallCluster, definition: Obj) -> Obj:
    kubectl = InsideApi(cluster.plane, Actor("admin", ("system:masters",)), "kubectl")
    return (await kubectl.patch(DEFINITIONS, "", definition["metadata"]["name"], Patch("apply", definition))).obj()


def versions(definition: Obj) -> list[str]:
    return [one["name"] for one in definition["spec"]["versions"]]


def owners_of_the_spec(definition: Obj) -> set[str]:
    return {one["manager"] for one in definition["metadata"]["managedFields"] if "f:spec" in one["fieldsV1"]}


@virtual
async def test_a_provided_definition_yields_to_an_apply_without_force(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        taken = await server_side_applied(cluster, theirs("v1beta1", "v1beta2", webhook=True))
        assert versions(taken) == ["v1beta1", "v1beta2"]
        assert taken["spec"]["names"]["shortNames"] == ["cq"]
        assert owners_of_the_spec(taken) == {"kubectl"}
        again = await server_side_applied(cluster, theirs("v1beta2"))
        assert versions(again) == ["v1beta2"]


@virtual
async def test_one_that_was_taken_over_is_not_provided_again(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        await server_side_applied(cluster, theirs("v1beta1", "v1beta2"))
        await cluster.patch(DEFINITIONS, NAME, {"metadata": {"annotations": {"shoal.dev/shape": "older"}}})
        await provide_foreign(cluster.api)
        kept = await cluster.get(DEFINITIONS, NAME)
        assert kept["spec"]["names"]["shortNames"] == ["cq"]
        assert owners_of_the_spec(kept) == {"kubectl"}


@virtual
async def test_one_that_was_taken_over_yields_to_no_third_manager(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        await server_side_applied(cluster, theirs("v1beta1", "v1beta2"))
        other = InsideApi(cluster.plane, Actor("admin", ("system:masters",)), "helm")
        with pytest.raises(RefusedError, match='conflict with "kubectl"'):
            await other.patch(DEFINITIONS, "", NAME, Patch("apply", theirs("v1beta1")))


@pytest.mark.parametrize("webhook", [False, True])
@virtual
async def test_stored_objects_are_kept_where_the_new_definition_lacks_their_version(
    tmp_path: Path, webhook: bool
) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        for name in ("a", "b"):
            await cluster.create(NEW, {"metadata": {"name": name}, "spec": {"cohortName": "research"}})
        taken = await server_side_applied(cluster, theirs("v1beta1", webhook=webhook))
        assert taken["status"]["storedVersions"] == ["v1beta1"]

        async def is_migrated() -> bool:
            try:
                await cluster.all(NEW)
            except NotFoundError:
                return True
            return False

        await cluster.until(is_migrated)
        found = await cluster.all(OLD)
        assert [(one["metadata"]["name"], one["spec"]["cohort"]) for one in found] == [
            ("a", "research"),
            ("b", "research"),
        ]
        assert "cohortName" not in found[0]["spec"]
        changed = await cluster.patch(OLD, "a", {"spec": {"cohort": "other"}})
        assert changed.obj()["spec"]["cohort"] == "other"


@virtual
async def test_stored_versions_of_other_definitions_are_not_given_up(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        await server_side_applied(cluster, theirs("v1beta1", "v1beta2"))
        with pytest.raises(
            InvalidError, match=r"missing from spec\.versions; v1beta2 was previously a storage version"
        ):
            await server_side_applied(cluster, theirs("v1beta1"))


@virtual
async def test_a_definition_that_replaces_a_provided_one_keeps_what_is_stored_too(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        await cluster.create(NEW, {"metadata": {"name": "a"}, "spec": {"cohortName": "research"}})
        present = await cluster.get(DEFINITIONS, NAME)
        wanted = theirs("v1beta1")
        wanted["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"]
        await cluster.api.update(DEFINITIONS, wanted)

        async def is_migrated() -> bool:
            return bool((await cluster.get(OLD, "a"))["spec"].get("cohort") == "research")

        await cluster.until(is_migrated)
