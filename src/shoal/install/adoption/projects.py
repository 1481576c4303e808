"""The projects whose objects Shoal can take over: their controllers, their kinds, and the parts of Shoal for them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from shoal.api.run_configuration import ProjectNamespaces
from shoal.units.errors import UserError, Where
from shoal.units.near_texts import meant_words

_USUAL = ProjectNamespaces()
_KUEUE = "kueue.x-k8s.io"


class AdoptedKind(NamedTuple):
    api_version: str
    plural: str
    name: str
    is_namespaced: bool = True
    use: str = ""
    """What Shoal does with its objects; empty: they have no effect while Shoal decides."""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class AdoptedProject(msgspec.Struct, frozen=True):
    name: str
    title: str
    namespace: str
    """Of its usual installation."""
    deployments: tuple[str, ...]
    """Of its controllers, in the order in which they are stopped. A controller that restores others comes first."""
    leases: tuple[str, ...]
    """By which Shoal sees that it runs."""
    config_map: str
    parts: tuple[str, ...]
    """The parts of `shoal run` that take over."""
    kinds: tuple[AdoptedKind, ...]
    schedulers: tuple[str, ...] = ()
    has_whole_namespace: bool = False
    """Whether each Deployment of its namespace is one of its controllers, whatever its name is."""

    def is_controller(self, name: str) -> bool:
        return self.has_whole_namespace or name in self.deployments

    def rank(self, name: str) -> tuple[int, str]:
        """Also of a name with the name of a Helm release before it."""
        order = self.deployments
        endings = (at for at, one in enumerate(order) if name.endswith(one.removeprefix(self.name)))
        return (order.index(name) if name in order else next(endings, len(order)), name)


def _cluster_wide(api_version: str, plural: str, name: str, use: str = "") -> AdoptedKind:
    return AdoptedKind(api_version, plural, name, is_namespaced=False, use=use)


KUEUE = AdoptedProject(
    "kueue",
    "Kueue",
    _USUAL.kueue,
    ("kueue-controller-manager",),
    ("c1f6bfd2.kueue.x-k8s.io",),
    "kueue-manager-config",
    ("queues", "jobs", "pods", "gatekeeper"),
    (
        _cluster_wide(f"{_KUEUE}/v1beta2", "clusterqueues", "ClusterQueue", "quotas and their sharing apply as before"),
        _cluster_wide(f"{_KUEUE}/v1beta2", "cohorts", "Cohort", "quota is shared along the same tree"),
        AdoptedKind(f"{_KUEUE}/v1beta2", "localqueues", "LocalQueue", use="jobs enter by the same queues"),
        _cluster_wide(f"{_KUEUE}/v1beta2", "resourceflavors", "ResourceFlavor", "nodes are chosen by the same labels"),
        _cluster_wide(f"{_KUEUE}/v1beta2", "topologies", "Topology", "levels of placement stay the same"),
        _cluster_wide(f"{_KUEUE}/v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", "priorities apply"),
        _cluster_wide(f"{_KUEUE}/v1beta2", "admissionchecks", "AdmissionCheck", "workloads wait for the same checks"),
        _cluster_wide(
            f"{_KUEUE}/v1beta2",
            "provisioningrequestconfigs",
            "ProvisioningRequestConfig",
            "capacity is requested by the same settings",
        ),
        AdoptedKind(f"{_KUEUE}/v1beta2", "workloads", "Workload", use="admissions stay, and waiting ones are decided"),
        _cluster_wide(f"{_KUEUE}/v1beta1", "multikueueconfigs", "MultiKueueConfig"),
        _cluster_wide(f"{_KUEUE}/v1beta1", "multikueueclusters", "MultiKueueCluster"),
    ),
)
VOLCANO = AdoptedProject(
    "volcano",
    "Volcano",
    _USUAL.volcano,
    ("volcano-scheduler", "volcano-controllers", "volcano-admission"),
    ("volcano", "vc-scheduler"),
    "volcano-scheduler-configmap",
    ("scheduler", "volcano"),
    (
        _cluster_wide("scheduling.volcano.sh/v1beta1", "queues", "Queue", "quotas and states apply"),
        AdoptedKind("scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup", use="pods of a group start together"),
        AdoptedKind("batch.volcano.sh/v1alpha1", "jobs", "Job", use="pods are created and phases maintained"),
        _cluster_wide("topology.volcano.sh/v1alpha1", "hypernodes", "HyperNode", "levels of the network apply"),
        AdoptedKind("batch.volcano.sh/v1alpha1", "cronjobs", "CronJob"),
        AdoptedKind("flow.volcano.sh/v1alpha1", "jobflows", "JobFlow"),
        AdoptedKind("flow.volcano.sh/v1alpha1", "jobtemplates", "JobTemplate"),
    ),
    schedulers=("volcano",),
)
KAI = AdoptedProject(
    "kai",
    "KAI",
    _USUAL.kai,
    ("kai-operator", "kai-scheduler-default", "podgroup-controller", "queue-controller"),
    ("kai-scheduler-default",),
    "",
    ("scheduler", "kai"),
    (
        _cluster_wide("scheduling.run.ai/v2", "queues", "Queue", "quotas, limits and weights apply"),
        AdoptedKind("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup", use="pods of a group start together"),
        _cluster_wide("kai.scheduler/v1alpha1", "topologies", "Topology", "levels of placement stay the same"),
        _cluster_wide("kai.scheduler/v1", "schedulingshards", "SchedulingShard"),
        AdoptedKind("scheduling.run.ai/v1alpha2", "bindrequests", "BindRequest"),
    ),
    schedulers=("kai-scheduler",),
    has_whole_namespace=True,
)
PROJECTS = (KUEUE, VOLCANO, KAI)


def adopted_project(name: str) -> AdoptedProject:
    """Raises UserError for an unknown name."""
    known = {one.name: one for one in PROJECTS}
    if name not in known:
        what = f"project {name} cannot be adopted{meant_words(name, known)}"
        raise UserError(what, where=Where(path="--adopt"), fix=f"choose among {', '.join(known)}")
    return known[name]
