"""Node objects, their heartbeat, and what people write on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.fleets import fleet_cluster, machine, pod, statuses
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import LEASES, NODES, PODS
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.units.errors import UserError


@virtual
async def test_a_node_is_registered_as_a_kubelet_does_it(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8, labels={"zone": "a"})) as run:
        await run.cluster.pass_time(1)
        node = await run.cluster.get(NODES, "node-0")
        labels = node["metadata"]["labels"]
        assert (labels["kubernetes.io/hostname"], labels["zone"]) == ("node-0", "a")
        assert labels["nvidia.com/gpu.count"] == "8"
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert node["status"]["capacity"]["cpu"] == "96"
        said = {one["type"]: (one["status"], one["reason"], one["message"]) for one in node["status"]["conditions"]}
        assert said["Ready"] == ("True", "KubeletReady", "kubelet is posting ready status")
        assert said["MemoryPressure"][0] == said["DiskPressure"][0] == said["PIDPressure"][0] == "False"
        lease = await run.cluster.get(LEASES, "node-0", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "node-0"
        assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


@virtual
async def test_nodes_whose_doors_others_may_find_say_where_and_how_to_speak_there(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, settings=FleetSettings(kubelet_address="192.0.2.7", kubelet_port=10999)) as run:
        await run.cluster.pass_time(1)
        status = (await run.cluster.get(NODES, "node-0"))["status"]
        assert status["addresses"][0] == {"type": "InternalIP", "address": "192.0.2.7"}
        assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10999
        # API servers speak SPDY to a kubelet that does not say this, and ours has WebSocket alone.
        assert status["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]


@virtual
async def test_what_others_wrote_on_a_node_survives_a_new_start(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        mine = {"metadata": {"labels": {"team": "a"}}, "spec": {"unschedulable": True}}
        before = (await run.cluster.patch(NODES, "node-0", mine)).obj()
        await run.kill()
        run.start()
        await run.cluster.pass_time(5)
        node = await run.cluster.get(NODES, "node-0")
        assert node["metadata"]["uid"] == before["metadata"]["uid"]
        assert (node["metadata"]["labels"]["team"], node["spec"]["unschedulable"]) == ("a", True)
        assert node["status"]["nodeInfo"]["bootID"] == before["status"]["nodeInfo"]["bootID"]


@virtual
async def test_leases_are_renewed_one_after_another_over_the_period(tmp_path: Path) -> None:
    machines = [machine(f"node-{at}") for at in range(8)]
    async with fleet_cluster(tmp_path, *machines, settings=FleetSettings(lease_every_s=40)) as run:
        await run.cluster.pass_time(100)
        found = await run.cluster.all(LEASES, "kube-node-lease")
        times = sorted(one["spec"]["renewTime"] for one in found)
        assert len(set(times)) == 8
        assert times[0] > "2026-01-01T00:00:59"


@virtual
async def test_the_status_is_written_every_five_minutes(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        first = (await run.cluster.get(NODES, "node-0"))["metadata"]["resourceVersion"]
        await run.cluster.pass_time(250)
        assert (await run.cluster.get(NODES, "node-0"))["metadata"]["resourceVersion"] == first
        await run.cluster.pass_time(100)
        ready = next(
            c for c in (await run.cluster.get(NODES, "node-0"))["status"]["conditions"] if c["type"] == "Ready"
        )
        assert ready["lastHeartbeatTime"] > ready["lastTransitionTime"]


@virtual
async def test_a_node_that_was_called_unknown_says_at_once_that_it_is_well(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        # As the node controller does after its machine slept and no lease was renewed.
        unknown = (await run.cluster.get(NODES, "node-0"))["status"]["conditions"]
        for condition in unknown:
            condition |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
        await run.cluster.patch(NODES, "node-0", {"status": {"conditions": unknown}}, "status")
        await run.cluster.pass_time(10)
        found = (await run.cluster.get(NODES, "node-0"))["status"]["conditions"]
        said = {one["type"]: (one["status"], one["reason"]) for one in found}
        assert said["Ready"] == ("True", "KubeletReady")
        assert said["DiskPressure"] == ("False", "KubeletHasNoDiskPressure")


@virtual
async def test_the_mig_label_divides_the_gpus_of_an_idle_node(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, mig_strategy="mixed")) as run:
        cluster = run.cluster
        await cluster.pass_time(1)
        await cluster.patch(NODES, "node-0", {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.10gb"}}})
        await cluster.pass_time(2)
        node = await cluster.get(NODES, "node-0")
        assert node["metadata"]["labels"]["nvidia.com/mig.config.state"] == "success"
        assert node["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "14"
        assert node["status"]["allocatable"].get("nvidia.com/gpu", "0") == "0"
        asked = pod()
        asked["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.10gb": "1"}}
        await cluster.create(PODS, asked)
        running = await run.until_phase("pod", "Running")
        held = statuses(running)["main"]["allocatedResourcesStatus"][0]
        assert held["name"] == "nvidia.com/mig-1g.10gb"
        assert held["resources"][0]["resourceID"].startswith("MIG-")


@virtual
async def test_two_machines_of_one_name_are_refused(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        with pytest.raises(UserError, match="two machines are called twin"):
            Fleet(cluster.context("kubelets"), [machine("twin"), machine("twin")], FleetSettings())


@virtual
async def test_a_node_counts_its_energy_before_anybody_asks(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2)) as run:
        await run.cluster.create(PODS, pod(gpus=1, run_for="100s", restartPolicy="Never"))
        await run.until_phase("pod", "Succeeded", 200)
        await run.cluster.pass_time(50)
        node = run.fleet.node("node-0")
        assert node is not None
        spent = _energy(node.dcgm())
        assert spent[1] > 100 * 1000 * 50
        assert spent[0] - spent[1] == pytest.approx(100 * 1000 * 500, rel=0.1)
        await run.cluster.patch(NODES, "node-0", _fault("fail"))
        await run.cluster.pass_time(1_000)
        await run.cluster.patch(NODES, "node-0", _fault(None))
        await run.cluster.pass_time(20)
        assert all(0 < after < before for before, after in zip(spent, _energy(node.dcgm()), strict=True))


def _fault(kind: str | None) -> Obj:
    return {"metadata": {"annotations": {"shoal.dev/fault": kind and json.dumps({"kind": kind, "id": "one"})}}}


def _energy(text: str) -> list[float]:
    lines = [line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{")]
    return [float(line.rpartition(" ")[2]) for line in lines]


@virtual
async def test_a_nodes_exporter_names_the_pod_that_holds_a_gpu(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        created = await run.cluster.create(PODS, pod("train", gpus=1))
        await run.until_phase("train", "Running")
        node = run.fleet.node("node-0")
        assert node is not None
        assert 'pod="train"' in node.dcgm()
        assert "GPU-node-0-0" in node.run(created["metadata"]["uid"], "main", ["nvidia-smi", "-L"]).stdout
        usage = {one["metadata"]["name"]: used for one, used in node.pod_usage()}
        assert usage["train"]["main"].cpu_milli > 0
