"""Kinds of other projects: their definitions are taken by the server, and take what people write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from build.foreign_kinds import SAMPLES, condition, established, foreign_cluster, lost, provided_kinds, samples
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.kueue.conversion import GROUP, V1BETA2, convert
from shoal.client.kind import DEFINITIONS, NAMESPACES, Kind
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError, InvalidError
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.apiserver.foreign.provided import LABEL, SHAPE
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.wiring.foreign_kinds import provide_foreign

KINDS = provided_kinds()
COLLECTED = Path(__file__).parents[5] / "shared" / "manifests"
POD_GROUPS = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
PYTORCH_JOBS = Kind("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
CLUSTER_QUEUES = Kind("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", is_namespaced=False)


@virtual
async def test_every_definition_is_accepted_and_served_under_all_its_names(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        found = {one["metadata"]["name"]: one for one in await cluster.all(DEFINITIONS)}
        assert found.keys() == {one["metadata"]["name"] for one in definitions()}
        for name, one in found.items():
            assert condition(one, "NamesAccepted") == "True", name
            assert condition(one, "NonStructuralSchema") == "", name
            assert one["status"]["acceptedNames"] == one["spec"]["names"], name
        served = {(kind.kind.group, kind.kind.plural) for kind in await cluster.api.served()}
        assert {(kind.group, kind.plural) for kind in KINDS.values()} <= served


def test_every_kind_has_a_sample() -> None:
    shown = {(one["apiVersion"].partition("/")[0], one["kind"]) for one in samples(SAMPLES.glob("*.yaml"))}
    assert shown == {(kind.group, kind.name) for kind in KINDS.values()}


@virtual
async def test_what_people_write_is_kept_whole(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        assert [await _lost(cluster, one) for one in samples(SAMPLES.glob("*.yaml"))] == [
            [] for _ in samples(SAMPLES.glob("*.yaml"))
        ]


@virtual
async def test_what_was_written_in_one_version_is_shown_by_the_others(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        for given in samples(SAMPLES.glob("*.yaml")):
            written = KINDS[given["apiVersion"], given["kind"]]
            assert await _lost(cluster, given) == []
            for other in KINDS.values():
                if (other.group, other.plural) == (written.group, written.plural):
                    shown = await cluster.get(other, given["metadata"]["name"])
                    assert lost(_as_told(given, other.api_version), shown) == []


@pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")
@virtual
async def test_collected_manifests_are_kept_whole(tmp_path: Path) -> None:
    found = [one for one in samples(sorted(COLLECTED.rglob("*.yaml"))) if (one["apiVersion"], one["kind"]) in KINDS]
    assert len(found) >= 20
    async with foreign_cluster(tmp_path) as cluster:
        assert [await _lost(cluster, one) for one in found] == [[] for _ in found]


def _as_told(given: dict[str, Any], api_version: str) -> dict[str, Any]:
    """What was written, as another version calls it, or its own once it was stored."""
    if given["apiVersion"].partition("/")[0] != GROUP:
        return {**given, "apiVersion": api_version}
    return convert(convert(given, V1BETA2), api_version)


async def _lost(cluster: SmallCluster, given: dict[str, Any]) -> list[str]:
    kind = KINDS[given["apiVersion"], given["kind"]]
    namespace = given["metadata"].get("namespace", "default")
    if namespace not in {one["metadata"]["name"] for one in await cluster.all(NAMESPACES)}:
        await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
    try:
        await cluster.create(kind, {**given, "metadata": dict(given["metadata"])}, namespace)
    except AlreadyExistsError:
        await cluster.delete(kind, given["metadata"]["name"], namespace=namespace)
        return await _lost(cluster, given)
    return lost(_as_told(given, given["apiVersion"]), await cluster.get(kind, given["metadata"]["name"], namespace))


def test_no_two_kinds_of_a_group_share_a_name() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for one in definitions():
        names = one["spec"]["names"]
        counts.update((one["spec"]["group"], name) for name in {names["plural"], names["singular"]})
        counts.update((one["spec"]["group"], name) for name in names.get("shortNames", ()))
    assert [name for name, count in counts.items() if count > 1] == []


def test_groups_of_kubernetes_itself_carry_the_approval_that_their_owners_name() -> None:
    for one in definitions():
        is_protected = one["spec"]["group"].endswith((".k8s.io", ".kubernetes.io"))
        approved = one["metadata"].get("annotations", {}).get("api-approved.kubernetes.io", "")
        assert approved.startswith("https://github.com/") is is_protected, one["metadata"]["name"]


@virtual
async def test_defaults_are_filled_in_and_wrong_fields_are_refused(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        queue = await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": "q"}, "spec": {}})
        assert queue["spec"]["queueingStrategy"] == "BestEffortFIFO"
        assert queue["spec"]["preemption"] == {
            "reclaimWithinCohort": "Never",
            "withinClusterQueue": "Never",
            "borrowWithinCohort": {"policy": "Never"},
        }
        group = await cluster.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1}})
        assert group["spec"]["queue"] == "default"
        with pytest.raises(InvalidError, match=r"spec.pytorchReplicaSpecs: Required value"):
            await cluster.create(PYTORCH_JOBS, {"metadata": {"name": "j"}, "spec": {}})
        with pytest.raises(InvalidError, match=r'spec.queueingStrategy: Unsupported value: "LIFO"'):
            await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": "r"}, "spec": {"queueingStrategy": "LIFO"}})


@virtual
async def test_quota_is_not_below_nothing(tmp_path: Path) -> None:
    """It was taken, and the queue said afterwards that it could not be read."""
    async with foreign_cluster(tmp_path) as cluster:

        async def create(name: str, amount: object) -> None:
            quota = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": amount}]}
            groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
            await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": {"resourceGroups": groups}})

        for index, amount in enumerate((0, "0", 4, "1500m", "+2", "1.5Gi", "1e-3")):
            await create(f"good-{index}", amount)
        for amount in ("-1", -1, "-500m", "-0.5Gi"):
            with pytest.raises(InvalidError, match=r"resources\[0\].nominalQuota: Invalid value"):
                await create("bad", amount)


KUEUES_SHORT_NAMES = {
    "resourceflavors": "flavor flavors rf",
    "clusterqueues": "cq",
    "localqueues": "queue queues lq",
    "workloads": "kwl kueueworkload kueueworkloads",
    "cohorts": "co",
    "workloadpriorityclasses": "wpc",
    "admissionchecks": "ac",
    "topologies": "topo",
    "provisioningrequestconfigs": "prc",
    "multikueueconfigs": "mkconf",
    "multikueueclusters": "mkc",
}


def test_kueues_kinds_have_the_short_names_that_people_type() -> None:
    named = {
        one["spec"]["names"]["plural"]: one["spec"]["names"].get("shortNames", [])
        for one in definitions()
        if one["spec"]["group"] == CLUSTER_QUEUES.group
    }
    assert {plural: set(short.split()) - set(named[plural]) for plural, short in KUEUES_SHORT_NAMES.items()} == {
        plural: set() for plural in KUEUES_SHORT_NAMES
    }


def test_whoever_uses_an_old_version_of_kueues_kinds_is_warned_in_its_words() -> None:
    kinds = [one["spec"] for one in definitions() if one["spec"]["group"] == CLUSTER_QUEUES.group]
    told = {
        (one["name"], one.get("deprecated", False), one.get("deprecationWarning"))
        for k in kinds
        for one in k["versions"]
    }
    words = "This version is deprecated. Use v1beta2 instead."
    assert {row for row in told if row[0] != "v1alpha1"} == {("v1beta1", True, words), ("v1beta2", False, None)}


@virtual
async def test_the_status_has_a_door_of_its_own_where_the_project_gives_it_one(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {}}}}
        job = await cluster.create(
            PYTORCH_JOBS, {"metadata": {"name": "j"}, "spec": spec, "status": {"startTime": "x"}}
        )
        assert "status" not in job
        active = {"replicaStatuses": {"Worker": {"active": 2}}}
        await cluster.patch(PYTORCH_JOBS, "j", {"status": active}, subresource="status")
        assert (await cluster.get(PYTORCH_JOBS, "j"))["status"] == active
        # A pod group of Volcano has no such subresource: its status is written with it.
        group = await cluster.create(
            POD_GROUPS, {"metadata": {"name": "g"}, "spec": {}, "status": {"phase": "Inqueue"}}
        )
        assert group["status"] == {"phase": "Inqueue"}


@virtual
async def test_a_definition_that_somebody_brought_stays_as_it_is(tmp_path: Path) -> None:
    own = next(one for one in definitions() if one["metadata"]["name"] == "queues.scheduling.volcano.sh")
    del own["metadata"]["labels"]
    own["spec"]["names"]["shortNames"] = ["mine"]
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(DEFINITIONS, own)
        await provide_foreign(cluster.api)
        await established(cluster)
        kept = await cluster.get(DEFINITIONS, "queues.scheduling.volcano.sh")
        assert kept["spec"]["names"]["shortNames"] == ["mine"]
        assert len(await cluster.all(DEFINITIONS)) == len(list(definitions()))


@virtual
async def test_what_an_earlier_release_provided_is_renewed_unless_somebody_wrote_over_it(tmp_path: Path) -> None:
    older = {"metadata": {"annotations": {SHAPE: "older"}}, "spec": {"names": {"shortNames": ["old"]}}}
    async with foreign_cluster(tmp_path) as cluster:
        for name in ("queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh"):
            await cluster.patch(DEFINITIONS, name, older)
        theirs = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "spec": {"names": {"shortNames": ["theirs"]}},
        }
        await _apply_as_another(cluster, "podgroups.scheduling.volcano.sh", theirs)
        await provide_foreign(cluster.api)
        renewed = await cluster.get(DEFINITIONS, "queues.scheduling.volcano.sh")
        assert renewed["spec"]["names"]["shortNames"] == ["q", "queue-v1beta1"]
        assert renewed["metadata"]["annotations"][SHAPE] != "older"
        assert renewed["metadata"]["labels"][LABEL] == "volcano"
        kept = await cluster.get(DEFINITIONS, "podgroups.scheduling.volcano.sh")
        assert kept["spec"]["names"]["shortNames"] == ["theirs"]


async def _apply_as_another(cluster: SmallCluster, name: str, body: dict[str, Any]) -> None:
    kubectl = InsideApi(cluster.plane, Actor("admin", ("system:masters",)), "kubectl-client-side-apply")
    await kubectl.patch(DEFINITIONS, "", name, Patch("merge", body))


@virtual
async def test_providing_twice_writes_nothing(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in await cluster.all(DEFINITIONS)}
        await provide_foreign(cluster.api)
        after = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in await cluster.all(DEFINITIONS)}
        assert after == before


def test_a_definition_that_one_caller_changes_is_whole_for_the_next() -> None:
    before = list(definitions())
    for one in definitions():
        one["spec"].clear()
    assert list(definitions()) == before
