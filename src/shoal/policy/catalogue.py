"""The catalogue of rules: of each reason its id, how severe it is, and what follows from the fault.

The id never changes and is never used again. The hundreds are subjects: 1 objects, 2 placement, 3 pods, 4 queues and
quotas, 5 sharing of GPUs, 6 monitoring, 7 autoscaling, 8 networks, 9 pipelines, schedulers and
programs. The fault itself is
described where the rule is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

import msgspec

Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""The worst first."""


class Entry(msgspec.Struct, frozen=True):
    id: str
    reason: str
    severity: Severity
    """`error`: it is refused or cannot work; `warning`: it works otherwise than intended; `info`: worth knowing."""
    effect: str


CATALOGUE: Final[tuple[Entry, ...]] = (
    Entry(
        "SHL-101",
        "InvalidObject",
        "error",
        "an API server refuses it, and what follows in the same file may have been applied already",
    ),
    Entry("SHL-102", "ReplacedObject", "error", "only the last of them exists after the files are applied"),
    Entry("SHL-103", "OldVersion", "error", "current releases do not serve the version, so the object is refused"),
    Entry("SHL-104", "OldFieldName", "warning", "the field is dropped or refused by current releases"),
    Entry("SHL-105", "MisplacedGroup", "error", "no controller watches the group, so nothing happens"),
    Entry(
        "SHL-106",
        "UnknownField",
        "warning",
        "a controller that does not know the field drops it without a message",
    ),
    Entry(
        "SHL-107",
        "UnknownKubernetesField",
        "error",
        "the object is refused, or the field is dropped without a message",
    ),
    Entry("SHL-108", "WrongType", "error", "the API server refuses the object"),
    Entry("SHL-109", "MissingField", "error", "the API server refuses the object"),
    Entry("SHL-110", "UnknownKind", "error", "no API server has the kind in this version"),
    Entry("SHL-111", "InvalidName", "error", "the API server refuses the object"),
    Entry("SHL-112", "UnknownKey", "warning", "nothing reads the label or annotation"),
    Entry("SHL-113", "ContradictoryNumbers", "error", "the object is refused, or never complete"),
    Entry("SHL-201", "CountTooStrict", "warning", "nodes with exactly as many GPUs as requested are left out"),
    Entry("SHL-202", "UnknownNodeLabel", "error", "no node fits, so the pods stay pending"),
    Entry(
        "SHL-203",
        "UnknownProductName",
        "error",
        "labels carry the driver's full name, so no node matches and the pods stay pending",
    ),
    Entry("SHL-204", "UntoleratedTaint", "error", "no node with a GPU accepts the pods, so they stay pending"),
    Entry("SHL-205", "RepelsOthersOnly", "warning", "the pods of the workload may all be placed on one node"),
    Entry(
        "SHL-206",
        "UnknownPriorityClass",
        "error",
        "pods with an unknown class are refused, and groups get no priority",
    ),
    Entry("SHL-207", "InstancesUnderSingle", "error", "no node advertises the resource, so the pods stay pending"),
    Entry(
        "SHL-208",
        "ModelTooLarge",
        "error",
        "the process ends with an out-of-memory error when it loads the weights",
    ),
    Entry("SHL-209", "ModelsShareMemory", "warning", "the pods that start last end with an out-of-memory error"),
    Entry("SHL-210", "UnknownGpuName", "error", "no node advertises the resource, so the pods stay pending"),
    Entry("SHL-211", "UnknownMigProfile", "error", "no node advertises the resource, so the pods stay pending"),
    Entry("SHL-212", "MixedGpuNames", "error", "no node offers both, or the process uses one of them only"),
    Entry("SHL-213", "TooManyGpus", "error", "no node fits, so the pods stay pending"),
    Entry("SHL-214", "ToleratesAll", "warning", "the pods are placed on unhealthy or reserved nodes too"),
    Entry("SHL-215", "SelectsNothing", "error", "the object has no effect"),
    Entry("SHL-216", "NoSuchTargetPort", "error", "connections to the Service are refused"),
    Entry("SHL-217", "NoSuchScaleTarget", "error", "the autoscaler does nothing"),
    Entry(
        "SHL-301",
        "OldLauncher",
        "warning",
        "current releases of PyTorch warn about the launcher, and it does not restart workers",
    ),
    Entry("SHL-302", "NoRendezvous", "error", "the workers do not find each other and wait until the timeout"),
    Entry("SHL-303", "UnsetVariable", "error", "the command gets the text $(NAME) itself"),
    Entry("SHL-304", "NoSuchService", "error", "the address does not resolve, so the workers wait until the timeout"),
    Entry(
        "SHL-305",
        "VisibleDevicesByHand",
        "warning",
        "the container may see GPUs of other pods, or none of its own",
    ),
    Entry("SHL-306", "NoLauncher", "warning", "the other GPUs are allocated and idle"),
    Entry("SHL-307", "RootLauncher", "error", "mpirun ends at once"),
    Entry("SHL-308", "TopologyNotPassed", "warning", "NCCL chooses paths without the file"),
    Entry("SHL-309", "MissingConfigMap", "error", "the pods wait in ContainerCreating"),
    Entry("SHL-310", "MissingPersistentVolumeClaim", "error", "the pods stay pending"),
    Entry("SHL-311", "NoSuchImage", "error", "the image cannot be pulled"),
    Entry("SHL-312", "PodSecurity", "error", "the pods are refused when they are created"),
    Entry("SHL-313", "PlainSecret", "warning", "everyone who may read the manifest or the object has the secret"),
    Entry("SHL-314", "NoHeadlessService", "warning", "the pods have no names in DNS"),
    Entry("SHL-315", "OpenDoor", "warning", "everyone who reaches the address can use the program and its GPUs"),
    Entry("SHL-316", "NoSuchVolume", "error", "the pod is refused"),
    Entry("SHL-317", "NoSuchPort", "error", "the probe fails, so the container is restarted or never ready"),
    Entry("SHL-318", "GivenTwice", "error", "the object is refused, or the last entry replaces the others"),
    Entry("SHL-319", "NoImage", "error", "the pod is refused"),
    Entry("SHL-320", "GpuWithoutRequest", "warning", "pods use GPUs that are allocated to others"),
    Entry("SHL-321", "SmallSharedMemory", "info", "processes end with a bus error"),
    Entry("SHL-322", "NoMemoryRequest", "info", "the pod is evicted first when memory is short"),
    Entry("SHL-323", "UnpinnedImage", "info", "runs cannot be repeated"),
    Entry("SHL-324", "ProcessesAndGpus", "warning", "GPUs are idle, or the processes end because there are too few"),
    Entry("SHL-325", "NodesAndPods", "error", "the workers wait for each other until the timeout"),
    Entry("SHL-326", "InvalidImageName", "error", "the container does not start"),
    Entry("SHL-327", "UnknownMedium", "error", "the pods wait in ContainerCreating"),
    Entry("SHL-328", "UnknownRole", "error", "the object is refused, or the pods of the role are not created"),
    Entry("SHL-329", "UnnamedContainer", "error", "the training operator refuses the job"),
    Entry("SHL-330", "NoSuchClaimTemplate", "error", "the pods stay pending"),
    Entry("SHL-331", "UnknownAction", "error", "Volcano refuses the job"),
    Entry("SHL-351", "UnequalGpus", "error", "the API server refuses the pods"),
    Entry("SHL-352", "NoGpuToleration", "warning", "tainted nodes do not accept the pods, so they stay pending"),
    Entry("SHL-353", "NoGpuNodeAffinity", "info", "only the resource keeps the pods from other nodes"),
    Entry("SHL-354", "PrivilegedContainer", "warning", "the container uses GPUs that are allocated to others"),
    Entry("SHL-355", "OverNamespaceMaximum", "error", "a pod takes more GPUs than its namespace allows one pod"),
    Entry("SHL-401", "NoSuchLocalQueue", "error", "the workload is not admitted"),
    Entry("SHL-402", "NoSuchPriorityClass", "error", "the workload is not created, or has no priority"),
    Entry(
        "SHL-403",
        "MisplacedQueueName",
        "error",
        "Kueue does not see the name, so the job starts without quota, or waits for ever",
    ),
    Entry("SHL-404", "NoNamespaceSelector", "error", "no workload can be admitted"),
    Entry("SHL-405", "MisplacedValue", "error", "the API server refuses the object"),
    Entry("SHL-406", "NoNodes", "warning", "admitted pods stay pending"),
    Entry(
        "SHL-407",
        "TaintedNodes",
        "warning",
        "admitted pods stay pending unless they tolerate the taint themselves",
    ),
    Entry("SHL-408", "NamesakeQueue", "info", "two unrelated quotas look like one"),
    Entry("SHL-409", "NeverCounted", "error", "the quota does not limit anything"),
    Entry("SHL-410", "UnsupportedScope", "error", "the API server refuses the quota"),
    Entry("SHL-411", "GpuByDefault", "warning", "containers without need of a GPU get one, or stay pending"),
    Entry("SHL-412", "GpuDemanded", "warning", "pods without GPUs are refused in the namespace"),
    Entry("SHL-413", "NoSuchClusterQueue", "error", "workloads of the queue are not admitted"),
    Entry("SHL-414", "NoSuchFlavor", "error", "the ClusterQueue is inactive and admits nothing"),
    Entry("SHL-421", "OverQuota", "error", "the API server refuses the pods of the workload"),
    Entry("SHL-501", "ExclusiveSharing", "error", "the device plugin refuses the configuration"),
    Entry("SHL-502", "ShortForm", "error", "the device plugin refuses the configuration"),
    Entry("SHL-503", "TooManyClients", "error", "the device plugin refuses the configuration"),
    Entry("SHL-504", "SharedInstances", "info", "neither memory nor faults are isolated any more"),
    Entry("SHL-505", "NoDefaultConfig", "warning", "nodes without a label keep their former configuration"),
    Entry("SHL-506", "UnknownConfigKey", "error", "nodes do not find their configuration"),
    Entry("SHL-507", "NoDisabledLayout", "error", "other nodes fail to apply their layout"),
    Entry(
        "SHL-508",
        "MixedLayout",
        "info",
        "under the strategy single the plugin advertises no instance of such a GPU",
    ),
    Entry("SHL-509", "NotTheOperatorsNamespace", "error", "the operator does not find the ConfigMap"),
    Entry("SHL-510", "InvalidConfig", "error", "the device plugin does not start, or shares nothing"),
    Entry("SHL-601", "OldMetricName", "error", "the expression selects nothing, so the alert never fires"),
    Entry("SHL-602", "UsedByFree", "error", "the alert fires at half of the memory"),
    Entry("SHL-603", "XidIsAGauge", "error", "the alert misses errors or never fires"),
    Entry("SHL-604", "RateOfGauge", "warning", "the figure has no meaning"),
    Entry("SHL-605", "TrueWithoutNvlink", "warning", "the alert fires on machines that have no NVLink"),
    Entry("SHL-606", "LabelNotExported", "error", "the join selects nothing"),
    Entry("SHL-607", "InvalidExpression", "error", "Prometheus refuses the file, so none of its rules are evaluated"),
    Entry(
        "SHL-701",
        "CpuOfGpuPods",
        "warning",
        "CPU utilization says little about GPU load, so replicas do not follow it",
    ),
    Entry("SHL-702", "NoTargetVersion", "error", "the autoscaler does not find its target"),
    Entry("SHL-703", "SeveralAutoscalers", "error", "they change the replicas against each other"),
    Entry("SHL-704", "NoNodeClass", "error", "Karpenter refuses the NodePool"),
    Entry("SHL-705", "NotAnInstanceAttribute", "warning", "Karpenter does not choose instance types by it"),
    Entry("SHL-706", "TaintWithoutValue", "warning", "pods that tolerate a value do not tolerate the taint"),
    Entry("SHL-707", "HighestNumberWins", "warning", "spot groups are chosen first"),
    Entry("SHL-708", "InvalidPool", "error", "Karpenter refuses the NodePool, or creates no node for it"),
    Entry("SHL-709", "UnknownTrigger", "error", "KEDA refuses the object, or the trigger fails"),
    Entry("SHL-801", "NoNameResolution", "error", "names do not resolve, so nearly every connection fails"),
    Entry("SHL-802", "NoExternalTraffic", "error", "downloads of models and data fail"),
    Entry("SHL-803", "UnsetNamespaceLabel", "error", "the rule selects no namespace"),
    Entry("SHL-901", "ForeignTemplateLanguage", "error", "the workflow is invalid"),
    Entry("SHL-902", "UnusedParameters", "warning", "changing the parameter changes nothing"),
    Entry("SHL-903", "MissingTask", "error", "the pipeline cannot start"),
    Entry("SHL-904", "MisplacedTolerations", "error", "the API server refuses the field or drops it"),
    Entry("SHL-905", "NotShared", "error", "the next task does not find the files"),
    Entry("SHL-906", "NotAScheduler", "warning", "nothing reads the ConfigMap"),
    Entry("SHL-907", "Spreads", "warning", "GPUs become fragmented, and large pods wait"),
    Entry("SHL-951", "NoCheckpoint", "warning", "a preempted or failed pod loses all of its work"),
    Entry("SHL-952", "NoResume", "warning", "a restarted pod begins from zero"),
    Entry("SHL-953", "RankAsDevice", "error", "the processes of all nodes but the first end with an invalid device"),
    Entry("SHL-954", "FixedRank", "error", "the processes do not find each other"),
    Entry("SHL-955", "RemotePath", "error", "the checkpoint is lost with the container"),
    Entry("SHL-956", "DriverInImage", "error", "CUDA reports that driver and library versions do not match"),
    Entry("SHL-957", "ShellForm", "info", "the program is killed without having written a checkpoint"),
)

Place = Literal["policy", "webhook", "warning"]
AT_ADMISSION: Final[Mapping[str, Place]] = {
    **dict.fromkeys(("UnequalGpus", "NoGpuToleration", "NoGpuNodeAffinity", "VisibleDevicesByHand"), "policy"),
    **dict.fromkeys(("GpuWithoutRequest", "PrivilegedContainer", "OverNamespaceMaximum"), "policy"),
    **dict.fromkeys(("OverQuota", "UnknownGpuName", "UnknownMigProfile", "MixedGpuNames", "TooManyGpus"), "webhook"),
    **dict.fromkeys(("UnknownNodeLabel", "UnknownProductName", "UntoleratedTaint", "UnknownPriorityClass"), "warning"),
    **dict.fromkeys(("CountTooStrict", "RepelsOthersOnly", "InstancesUnderSingle", "ToleratesAll"), "warning"),
    **dict.fromkeys(("ModelTooLarge", "ModelsShareMemory", "OldLauncher", "NoRendezvous"), "warning"),
    **dict.fromkeys(("UnsetVariable", "NoSuchService", "NoLauncher", "RootLauncher", "TopologyNotPassed"), "warning"),
    **dict.fromkeys(("MissingPersistentVolumeClaim", "NoSuchImage", "PodSecurity", "PlainSecret"), "warning"),
    **dict.fromkeys(("SmallSharedMemory", "NoMemoryRequest", "UnpinnedImage", "NoHeadlessService"), "warning"),
    **dict.fromkeys(("NoSuchLocalQueue", "NoSuchPriorityClass", "MisplacedQueueName", "OpenDoor"), "warning"),
    **dict.fromkeys(("CpuOfGpuPods", "NoTargetVersion", "SeveralAutoscalers"), "warning"),
    **dict.fromkeys(("NeverCounted", "UnsupportedScope", "GpuByDefault", "GpuDemanded"), "warning"),
    **dict.fromkeys(("ProcessesAndGpus", "NodesAndPods"), "warning"),
    **dict.fromkeys(("NoNameResolution", "NoExternalTraffic", "UnsetNamespaceLabel"), "warning"),
}
"""The rules that are checked when an object is created. `policy`: by the API server itself, from an expression;
`webhook`: by Shoal, because other objects or tables are needed; `warning`: the same, and where all rules are enforced,
it still warns only, since the object may be right with objects that are created later."""


@cache
def entries() -> dict[str, Entry]:
    """By reason."""
    return {entry.reason: entry for entry in CATALOGUE}


def reason_of(name: str) -> str:
    """The reason that is called so, by itself or by its id; the name itself if there is none."""
    return next((entry.reason for entry in CATALOGUE if entry.id.lower() == name.lower()), name)
