"""Readiness of the nodes: GPU operator, driver, container toolkit, exporter, labels, NUMA alignment, fabric."""

from __future__ import annotations

from shoal.data.gpu_drivers import LEAST_DRIVER, driver_branch, generation_of
from shoal.devices.names import NVLINK
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import few, labels_of, name_of
from shoal.policy.diagnosis.gangs import JOB_KINDS
from shoal.policy.diagnosis.gpu_stack import PRODUCT
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.kinds import (
    CLUSTER_POLICY,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    NODE_TOPOLOGY,
)
from shoal.policy.pod_templates import PodTemplateView, pod_templates
from shoal.policy.readiness.gpu_software import (
    SERVICE_MONITOR,
    gpu_nodes,
    images_of,
    is_down,
    name_list,
    numbers_of,
    programs,
    tag_of,
)
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    failed,
    manual,
    not_applicable,
    not_run,
    passed,
)

_LEAST_OPERATOR, _LEAST_TOOLKIT, _LEAST_BRANCH = (24, 9, 2), (1, 17, 8), 535
_MIG_CAPABLE = "nvidia.com/mig.capable"
_TOPOLOGY_LABEL = "shoal.dev/topology-manager-policy"
_ALIGNED = ("single-numa-node", "SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel")
_NO_NODES = "no node has a GPU"
_FABRIC = ("rdma/", "nvidia.com/hostdev", "vpc.amazonaws.com/efa", "mellanox.com/")
_TOPOLOGY_FILE = "NCCL_TOPO_FILE"


def _operator(facts: ReadinessFacts) -> Outcome:
    cluster = facts.cluster
    own = [one for one in programs(cluster, "shoal-operator", "shoal-controllers") if one.get("kind") == "Deployment"]
    theirs = [
        one
        for one in programs(cluster, "gpu-operator")
        if one.get("kind") == "Deployment" and any("gpu-operator" in image for image in images_of(one))
    ]
    down = [one for one in (*theirs, *own) if is_down(one)]
    if down:
        return failed(f"Deployment {name_list(down)} has no pod that is ready", "see why", "shoal doctor cluster")
    for one in theirs:
        tags = [tag for image in images_of(one) if "gpu-operator" in image and (tag := tag_of(image))]
        version = next((numbers_of(tag) for tag in tags if numbers_of(tag)), ())
        if not version:
            return manual(
                f"Deployment {name_list([one])} does not name its version: {', '.join(images_of(one))}",
                "check that it is v24.9.2 or newer",
                "helm list -A",
            )
        if version < _LEAST_OPERATOR:
            return failed(
                f"Deployment {name_list([one])} has version {tags[0]}",
                "upgrade the GPU operator to v24.9.2 or newer",
                "helm upgrade gpu-operator nvidia/gpu-operator -n gpu-operator --version v25.10.0",
            )
        return passed(f"Deployment {name_list([one])} has version {tags[0]}")
    if own:
        return passed(f"Shoal's operator runs: {name_list(own)}")
    if not gpu_nodes(cluster):
        return not_applicable(_NO_NODES)
    return failed("no Deployment of a GPU operator", "install the GPU stack", "shoal install")


def _drivers(facts: ReadinessFacts) -> Outcome:
    nodes = gpu_nodes(facts.cluster)
    if not nodes:
        return not_applicable(_NO_NODES)
    known = [(node, branch) for node in nodes if (branch := driver_branch(labels_of(node)))]
    old = [f"{name_of(node)}: {branch}, needs {_least(node)}" for node, branch in known if branch < _least(node)]
    if old:
        return failed(
            f"drivers are too old: {few(old)}",
            "install a newer driver on these nodes; with the operator set driver.version",
            "shoal upgrade --set driver.version=580.95.05",
        )
    missing = [name_of(node) for node in nodes if not driver_branch(labels_of(node))]
    if missing:
        return not_run(
            f"{len(missing)} of {len(nodes)} nodes with GPUs have no label of their driver: {few(missing)}",
            "kubectl get nodes -L nvidia.com/cuda.driver-version.major",
        )
    branches = sorted({branch for _, branch in known})
    return passed(f"{len(nodes)} nodes have drivers {', '.join(map(str, branches))}")


def _least(node: Obj) -> int:
    generation = generation_of(labels_of(node))
    own = next((least for name, least in LEAST_DRIVER if generation.startswith(name)), 0)
    return max(own, _LEAST_BRANCH)


def _toolkit(facts: ReadinessFacts) -> Outcome:
    tags = [
        tag
        for one in programs(facts.cluster, "container-toolkit")
        for image in images_of(one)
        if "toolkit" in image and (tag := tag_of(image))
    ]
    versions = [(numbers_of(tag), tag) for tag in tags if numbers_of(tag)]
    for policy in facts.cluster.all(CLUSTER_POLICY):
        tag = str(dig(policy, "spec", "toolkit", "version") or "")
        is_used = dig(policy, "spec", "toolkit", "enabled") is not False
        # What a policy asks for is installed when it is ready; an insecure version is a fault before that.
        is_ready = dig(policy, "status", "state") == "ready"
        if is_used and numbers_of(tag) and (is_ready or numbers_of(tag) < _LEAST_TOOLKIT):
            versions.append((numbers_of(tag), tag))
    if not versions:
        if not gpu_nodes(facts.cluster):
            return not_applicable(_NO_NODES)
        return manual(
            "no DaemonSet of the container toolkit; hosts may have it themselves",
            "check on each host that it is 1.17.8 or newer (older versions let containers leave their isolation)",
            "nvidia-ctk --version",
        )
    oldest, tag = min(versions)
    if oldest < _LEAST_TOOLKIT:
        return failed(
            f"the container toolkit has version {tag}, which has known vulnerabilities",
            "use 1.17.8 or newer",
            "shoal upgrade --set toolkit.version=v1.18.0",
        )
    return passed(f"the container toolkit has version {tag}")


def _exporter(facts: ReadinessFacts) -> Outcome:
    cluster = facts.cluster
    exporters = [one for one in programs(cluster, "dcgm-exporter", "shoal-agent") if one.get("kind") == "DaemonSet"]
    if not exporters:
        if not gpu_nodes(cluster):
            return not_applicable(_NO_NODES)
        return failed("no DaemonSet exports metrics of GPUs", "install an exporter", "shoal install")
    down = [one for one in exporters if is_down(one)]
    if down:
        return failed(f"DaemonSet {name_list(down)} has no pod that is ready", "see why", "shoal doctor cluster")
    monitors = [
        one
        for one in cluster.all(SERVICE_MONITOR)
        if any(word in text for word in ("dcgm", "gpu", "shoal") for text in (name_of(one), str(one.get("spec"))))
    ]
    annotated = [
        one
        for one in exporters
        if str(dig(one, "spec", "template", "metadata", "annotations", "prometheus.io/scrape")) == "true"
    ]
    if monitors or annotated:
        how = f"ServiceMonitor {name_list(monitors)}" if monitors else "the annotation prometheus.io/scrape"
        return passed(f"DaemonSet {name_list(exporters)}, scraped by {how}")
    return failed(
        f"DaemonSet {name_list(exporters)} exists, and no ServiceMonitor selects it",
        "create a ServiceMonitor",
        "shoal upgrade --set dcgmExporter.serviceMonitor.enabled=true",
    )


def _labels(facts: ReadinessFacts) -> Outcome:
    nodes = gpu_nodes(facts.cluster)
    if not nodes:
        return not_applicable(_NO_NODES)
    lacking = [
        f"{name_of(node)} lacks {', '.join(missing)}"
        for node in nodes
        if (missing := [label for label in (PRODUCT, _MIG_CAPABLE, NVLINK) if label not in labels_of(node)])
    ]
    if lacking:
        return failed(
            f"{len(lacking)} of {len(nodes)} nodes with GPUs lack labels: {few(lacking)}",
            "run feature discovery on these nodes; Shoal's agent sets all three",
            "shoal doctor cluster",
        )
    return passed(f"{len(nodes)} nodes have product, MIG capability and NVLink state as labels")


def _numa(facts: ReadinessFacts) -> Outcome:
    nodes = gpu_nodes(facts.cluster)
    if not nodes:
        return not_applicable(_NO_NODES)
    states = {name_of(node): _alignment(facts, node) for node in nodes}
    wrong = [f"{name}: {policy}" for name, policy in states.items() if policy and policy not in _ALIGNED]
    fix = "set topologyManagerPolicy: single-numa-node in the kubelet of the nodes with GPUs and restart it"
    command = "kubectl get --raw /api/v1/nodes/NODE/proxy/configz"
    if wrong:
        return failed(f"kubelets do not align devices: {few(wrong)}", fix, command)
    unknown = [name for name, policy in states.items() if not policy]
    if unknown:
        return manual(f"the policy of {len(unknown)} nodes is not known: {few(unknown)}", fix, command)
    return passed(f"{len(nodes)} nodes have the policy single-numa-node")


def _alignment(facts: ReadinessFacts, node: Obj) -> str:
    """Empty if it is not known."""
    label = labels_of(node).get(_TOPOLOGY_LABEL, "")
    topology = facts.cluster.find(NODE_TOPOLOGY, "", name_of(node))
    if topology is None:
        return label
    named = [
        *(str(one.get("value")) for one in maps(topology.get("attributes")) if "olicy" in str(one.get("name"))),
        *strings(topology.get("topologyPolicies")),
    ]
    return next((one for one in named if one in _ALIGNED), named[0] if named else label)


def _spanning(facts: ReadinessFacts) -> list[tuple[Obj, PodTemplateView]]:
    """Pod templates of jobs with several pods that use GPUs."""
    found = []
    for kind in JOB_KINDS:
        for job in facts.cluster.all(kind):
            templates = [one for one in pod_templates(job) if one.asks_gpus()]
            parallelism = dig(job, "spec", "parallelism")
            is_wide = kind.name != "Job" or (isinstance(parallelism, int) and parallelism > 1)
            found += [(job, one) for one in templates if is_wide]
    return found


def _nccl_topology(facts: ReadinessFacts) -> Outcome:
    spanning = _spanning(facts)
    if not spanning:
        return not_applicable("no job with GPUs runs on several nodes")
    lacking = [
        job
        for job, template in spanning
        if not any(
            one.get("name") == _TOPOLOGY_FILE
            for _, container in template.containers()
            for one in maps(container.get("env"))
        )
        and "shoal.dev/nccl-topology" not in template.annotations
    ]
    if lacking:
        return failed(
            f"jobs on several nodes without {_TOPOLOGY_FILE}: {name_list(lacking)}",
            f"mount the topology file of the machine type and set {_TOPOLOGY_FILE}; on virtual machines NCCL does not "
            "find the paths between GPUs and network cards by itself",
        )
    return passed(f"{len(spanning)} job templates name a topology file")


def _fabric(facts: ReadinessFacts) -> Outcome:
    nodes = gpu_nodes(facts.cluster)
    if len(nodes) < 2:
        return not_applicable("fewer than two nodes have GPUs")
    advertised = {name for node in nodes for name in string_keys(dig(node, "status", "allocatable"))}
    cards = sorted(name for name in advertised if name.startswith(_FABRIC))
    about = f"nodes advertise {few(cards)}" if cards else "no node advertises a network card for RDMA"
    return manual(
        f"{about}; the bandwidth between nodes is not known to the cluster",
        "measure it with all_reduce_perf of nccl-tests over two nodes: with InfiniBand more than 300 GB/s",
        "shoal check --smoke all-reduce --nccl-image IMAGE",
    )


CHECKS = (
    ReadinessCheck("gpu-operator", "GPU operator v24.9.2 or newer, or Shoal's", _operator, (NODE, DEPLOYMENT)),
    ReadinessCheck("drivers", "Driver 535 or newer, 570 for Blackwell", _drivers, (NODE,)),
    ReadinessCheck("toolkit", "Container toolkit 1.17.8 or newer", _toolkit, (NODE, DAEMON_SET)),
    ReadinessCheck("exporter", "GPU metrics are exported and scraped", _exporter, (NODE, DAEMON_SET, SERVICE_MONITOR)),
    ReadinessCheck("node-labels", "Product, MIG capability and NVLink state are labels", _labels, (NODE,)),
    ReadinessCheck("numa", "Topology Manager single-numa-node on nodes with GPUs", _numa, (NODE,)),
    ReadinessCheck(
        "nccl-topology",
        "Jobs on several nodes mount a NCCL topology",
        _nccl_topology,
        JOB_KINDS,
        ("TopologyNotPassed",),
    ),
    ReadinessCheck("fabric", "Network between nodes measured above 300 GB/s", _fabric, (NODE,)),
)
