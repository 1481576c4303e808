"""Declares the RBAC permissions of each part of `shoal run`; roles and docs/permissions.md are made from this table.

A line is `verbs resources @groups =names`, several of one sort with commas between; no `@` is the core group. It is
here, as data, because two packages that do not import each other read it: the command that prints roles for any
cluster, and the embedded server, which has the role `system:shoal` from its start.

Guarantees: a part asks for what it does and for nothing else, no `*` anywhere; Secrets are named, and in one namespace,
except by `pod-autoscaling`, which reads those that triggers name and runs only if it is named.

Rejected: one role of everything. A cluster that runs Shoal beside Kueue needs the scheduler's part alone, and should be
able to see that it cannot touch a job.
"""

from __future__ import annotations

from shoal.data.named_objects import DEFINITIONS, METRICS_APIS, MUTATING, VALIDATING

READ = "get,list,watch"
NAMESPACE = "shoal-system"
"""Where Shoal's own objects are by default."""
ELECTION_NAMESPACE = "kube-system"
"""Where the lease of those that want to lead is by default."""

_KUEUE = "@kueue.x-k8s.io"
_DRA = "@resource.k8s.io"
_ADMISSION = "@admissionregistration.k8s.io"
_RBAC = "@rbac.authorization.k8s.io"

EVENTS = "create,patch,update events @,events.k8s.io"

FACTS = (
    f"{READ} namespaces,nodes,pods",
    f"{READ} persistentvolumeclaims,persistentvolumes",
    f"{READ} storageclasses @storage.k8s.io",
    f"{READ} priorityclasses @scheduling.k8s.io",
    f"{READ} poddisruptionbudgets @policy",
    f"{READ} daemonsets,deployments,replicasets,statefulsets @apps",
    f"{READ} jobs @batch",
    f"{READ} jobsets @jobset.x-k8s.io",
    f"{READ} deviceclasses,resourceclaims,resourceclaimtemplates,resourceslices {_DRA}",
    f"{READ} podgroups,workloads @scheduling.k8s.io",
    f"{READ} podgroups @scheduling.run.ai,scheduling.volcano.sh,scheduling.x-k8s.io",
    f"{READ} hypernodes @topology.volcano.sh",
    f"{READ} noderesourcetopologies @topology.node.k8s.io",
    f"{READ} topologies @kai.scheduler,kueue.x-k8s.io",
)
"""Objects that decisions depend on; every part that decides reads them."""

_WORKLOADS = (
    f"{READ} priorityclasses @scheduling.k8s.io",
    f"{READ} namespaces",
    f"{READ} resourceflavors,workloadpriorityclasses {_KUEUE}",
    f"create,delete,{READ},patch,update workloads {_KUEUE}",
    f"get,patch,update workloads/status {_KUEUE}",
    f"update workloads/finalizers {_KUEUE}",
)


def _running(leases: str, deployments: str) -> tuple[str, ...]:
    """Whether that project runs here itself. Shoal looks in one namespace; the right is by name and not for that
    namespace, because a project that is installed tomorrow has none yet and must be seen then."""
    return (f"get leases @coordination.k8s.io ={leases}", f"get deployments @apps ={deployments}")


_KUEUE_RUNNING = _running("c1f6bfd2.kueue.x-k8s.io", "kueue-controller-manager")
_RULING = (
    # Kueue's configuration, where people have one.
    f"{READ} configmaps =kueue-manager-config",
    *_KUEUE_RUNNING,
)
"""By what rules jobs are held, queued and let go."""

_BUDGETS = f"{READ} configmaps =shoal-budgets"
"""What enforced budgets have spent, which the recorder of the history writes."""

_JOB_KINDS = (
    ("batch", "jobs"),
    ("batch.volcano.sh", "jobs"),
    ("jobset.x-k8s.io", "jobsets"),
    ("kubeflow.org", "jaxjobs,mpijobs,paddlejobs,pytorchjobs,tfjobs,xgboostjobs"),
    ("ray.io", "rayclusters,rayjobs,rayservices"),
    ("sparkoperator.k8s.io", "sparkapplications"),
    ("trainer.kubeflow.org", "trainjobs"),
    ("workload.codeflare.dev", "appwrappers"),
)


def _doors(plurals: str, subresource: str) -> str:
    return ",".join(f"{plural}/{subresource}" for plural in plurals.split(","))


PARTS: dict[str, tuple[str, ...]] = {
    "scheduler": (
        *FACTS,
        # For the series of kube-state-metrics, where they are served.
        f"{READ} resourcequotas",
        f"{READ} horizontalpodautoscalers @autoscaling",
        f"{READ} cronjobs @batch",
        "create pods/binding",
        "create pods/eviction",
        "delete pods",
        "patch,update pods/status",
        # MIG instances that a node creates for a pod are requested by an annotation of the node.
        "patch nodes",
        "patch,update persistentvolumeclaims,persistentvolumes",
        f"create,patch,update resourceclaims {_DRA}",
        f"patch,update resourceclaims/status {_DRA}",
        # Since 1.36 the allocation in a claim's status needs this as well; older servers do not know it.
        f"patch,update resourceclaims/binding {_DRA}",
        # A pod owns the claim that is made for it: some clusters guard who may keep an owner from going.
        "update pods/finalizers",
        "get,patch,update podgroups/status @scheduling.k8s.io,scheduling.x-k8s.io",
        _BUDGETS,
        # Its pod groups are no gangs while it runs.
        *_KUEUE_RUNNING,
        *_running("sched-plugins-controllers", "scheduler-plugins-controller"),
    ),
    "queues": (
        *FACTS,
        f"{READ} limitranges",
        f"{READ} runtimeclasses @node.k8s.io",
        # Opens the topology gates of pods that other schedulers place.
        "patch pods",
        f"{READ} admissionchecks,clusterqueues,cohorts,localqueues,resourceflavors,topologies {_KUEUE}",
        f"{READ} workloadpriorityclasses,workloads {_KUEUE}",
        f"patch,update admissionchecks,clusterqueues,resourceflavors,topologies,workloads {_KUEUE}",
        f"get,patch,update clusterqueues/status,cohorts/status,localqueues/status,workloads/status {_KUEUE}",
        # Capacity for the Workloads whose queue requires that check.
        f"{READ} provisioningrequestconfigs {_KUEUE}",
        f"get,patch,update admissionchecks/status {_KUEUE}",
        f"update workloads/finalizers {_KUEUE}",
        "create podtemplates",
        f"create,delete,{READ} provisioningrequests @autoscaling.x-k8s.io",
        *_RULING,
        _BUDGETS,
    ),
    "jobs": (
        *_WORKLOADS,
        *_RULING,
        *(f"{READ},patch,update {plurals} @{group}" for group, plurals in _JOB_KINDS),
        *(f"get,patch,update {_doors(plurals, 'status')} @{group}" for group, plurals in _JOB_KINDS),
        *(f"update {_doors(plurals, 'finalizers')} @{group}" for group, plurals in _JOB_KINDS),
        f"{READ} clustertrainingruntimes,trainingruntimes @trainer.kubeflow.org",
        "create commands @bus.volcano.sh",
    ),
    "pods": (
        *_WORKLOADS,
        *_RULING,
        f"delete,{READ},patch,update pods",
        "patch,update pods/status",
        "update pods/finalizers",
        f"{READ} statefulsets @apps",
        "update statefulsets/finalizers @apps",
        f"{READ} leaderworkersets @leaderworkerset.x-k8s.io",
        "update leaderworkersets/finalizers @leaderworkerset.x-k8s.io",
        # The minimum of a pod group, whose pods are queued together.
        f"{READ} podgroups,workloads @scheduling.k8s.io",
        f"{READ} podgroups @scheduling.run.ai,scheduling.volcano.sh,scheduling.x-k8s.io",
        # The pods of a queued Job of Volcano are not queued again.
        f"{READ} jobs @batch.volcano.sh",
    ),
    "gatekeeper": (
        *_RULING,
        f"create,{READ} validatingadmissionpolicies,validatingadmissionpolicybindings {_ADMISSION}",
        f"delete,patch,update validatingadmissionpolicies,validatingadmissionpolicybindings {_ADMISSION} ={VALIDATING}",
        f"create,{READ} mutatingadmissionpolicies,mutatingadmissionpolicybindings {_ADMISSION}",
        f"delete,patch,update mutatingadmissionpolicies,mutatingadmissionpolicybindings {_ADMISSION} ={MUTATING}",
        f"create,{READ} mutatingwebhookconfigurations {_ADMISSION}",
        f"delete,patch,update mutatingwebhookconfigurations {_ADMISSION} =shoal-gatekeeping",
        f"create,{READ} validatingwebhookconfigurations {_ADMISSION}",
        f"delete,patch,update validatingwebhookconfigurations {_ADMISSION} =shoal-admission",
        # What the admission rules look up; of ConfigMaps and ServiceAccounts only whether they exist. No Secrets: their
        # existence cannot be read without their content.
        f"{READ} configmaps,namespaces,nodes,persistentvolumeclaims,resourcequotas,serviceaccounts,services",
        f"{READ} priorityclasses @scheduling.k8s.io",
        f"{READ} customresourcedefinitions @apiextensions.k8s.io",
        # A user that may change any definition may have all objects of its kind sent to itself.
        f"patch customresourcedefinitions @apiextensions.k8s.io ={DEFINITIONS}",
        # A policy that reads a kind may be written by those only who may read it.
        f"{READ} localqueues,workloadpriorityclasses {_KUEUE}",
        f"{READ} resourceflavors {_KUEUE}",
        "create namespaces",
    ),
    "volcano": (
        f"{READ} namespaces,pods",
        f"{READ} priorityclasses @scheduling.k8s.io",
        f"create,delete,{READ},patch,update podgroups @scheduling.volcano.sh",
        f"create,{READ},patch,update queues @scheduling.volcano.sh",
        "get,patch,update podgroups/status,queues/status @scheduling.volcano.sh",
        f"delete,{READ} commands @bus.volcano.sh",
        f"delete,{READ},patch,update jobs @batch.volcano.sh",
        "get,patch,update jobs/status @batch.volcano.sh",
        "update jobs/finalizers @batch.volcano.sh",
        # The configuration of Volcano's scheduler, where people have one.
        f"{READ} configmaps =volcano-scheduler-configmap",
        # The pods of its jobs, and what their plugins put beside them.
        "create,delete,patch pods",
        "create,patch configmaps",
        "create persistentvolumeclaims,secrets,services",
        "create networkpolicies @networking.k8s.io",
        "get daemonsets,replicasets,statefulsets @apps",
        "get jobs @batch",
        # The owner of pods without a group owns the group that is made for them.
        "update daemonsets/finalizers,replicasets/finalizers,statefulsets/finalizers @apps",
        "update jobs/finalizers @batch",
        "update pods/finalizers",
        *_running("vc-scheduler,volcano", "volcano-scheduler"),
    ),
    "kai": (
        f"{READ} namespaces,pods",
        f"{READ} priorityclasses @scheduling.k8s.io",
        f"create,{READ},patch podgroups @scheduling.run.ai",
        f"{READ} queues @scheduling.run.ai",
        "get,patch,update podgroups/status,queues/status @scheduling.run.ai",
        # Node pools and their settings, and the use of queues over time, which is kept on them.
        f"{READ},patch schedulingshards @kai.scheduler",
        # Which label names node pools.
        f"{READ} configs @kai.scheduler",
        # The group that a pod belongs to, and why it waits.
        "patch pods,pods/status",
        # Whose pods belong together.
        "get daemonsets,deployments,replicasets,statefulsets @apps",
        "get cronjobs @batch",
        *(f"get {plurals} @{group}" for group, plurals in _JOB_KINDS),
        "get notebooks,scheduledworkflows @kubeflow.org",
        "get leaderworkersets @leaderworkerset.x-k8s.io",
        "get workflows @argoproj.io",
        "get pipelineruns,taskruns @tekton.dev",
        "get configurations,revisions,services @serving.knative.dev",
        "get inferenceservices @serving.kserve.io",
        *_running("kai-scheduler-default", "kai-scheduler-default,podgroup-controller,queue-controller"),
    ),
    "advisor": (
        f"{READ} configmaps,limitranges,namespaces,nodes,persistentvolumeclaims,pods,resourcequotas,services",
        f"{READ} deployments,statefulsets @apps",
        f"{READ} horizontalpodautoscalers @autoscaling",
        f"{READ} priorityclasses @scheduling.k8s.io",
        f"{READ} clusterqueues,localqueues,resourceflavors,workloadpriorityclasses {_KUEUE}",
        f"{READ} podgroups,queues @scheduling.volcano.sh",
        f"{READ} leaderworkersets @leaderworkerset.x-k8s.io",
        f"{READ} inferenceservices @serving.kserve.io",
        f"{READ} workflows @argoproj.io",
        f"{READ} pipelines,tasks @tekton.dev",
        f"{READ} networkpolicies @networking.k8s.io",
        f"{READ} prometheusrules @monitoring.coreos.com",
        f"{READ} scaledobjects @keda.sh",
        f"{READ} misplacedscaledobjects @autoscaling.keda.sh",
        f"{READ} nodepools @karpenter.sh",
        f"{READ} clusterpolicies @nvidia.com",
        f"{READ} misplacedclusterpolicies @config.openshift.io",
        *(f"{READ} {plurals} @{group}" for group, plurals in _JOB_KINDS),
    ),
    "tenants": (
        f"{READ} resourcequotas",
        "patch resourcequotas",
        "get namespaces",
        f"get,patch clusterqueues {_KUEUE}",
    ),
    "operator": (
        f"{READ} clusterpolicies,nvidiadrivers @nvidia.com",
        "get,patch,update clusterpolicies/status,nvidiadrivers/status @nvidia.com",
        # The components are owned by the policy: some clusters guard who may keep an owner from going.
        "update clusterpolicies/finalizers,nvidiadrivers/finalizers @nvidia.com",
        f"{READ} misplacedclusterpolicies @config.openshift.io",
        f"create,delete,{READ},patch,update runtimeclasses @node.k8s.io",
        f"create,delete,{READ},patch,update clusterrolebindings,clusterroles {_RBAC}",
        f"{READ},patch,update nodes",
        # What the components may do: a role can be given by those only who have it.
        f"delete,{READ} pods",
        "create pods/eviction",
        "patch nodes/status,pods/status",
        "update pods/devices",
        f"{READ} daemonsets @apps",
    ),
    "pod-autoscaling": (
        f"{READ} namespaces,nodes,pods",
        f"{READ},patch deployments,statefulsets @apps",
        f"{READ},patch leaderworkersets @leaderworkerset.x-k8s.io",
        f"create,delete,{READ},update horizontalpodautoscalers @autoscaling",
        "get,list limitranges",
        f"{READ} scaledjobs @keda.sh",
        f"{READ},update scaledobjects @keda.sh",
        "update scaledjobs/status,scaledobjects/status @keda.sh",
        "get clustertriggerauthentications,triggerauthentications @keda.sh",
        f"create,delete,{READ} jobs @batch",
        # What ScaledObjects and model servers scale. Kinds of other groups need a role of their own.
        "get,update deployments/scale,replicasets/scale,statefulsets/scale @apps",
        "get,update leaderworkersets/scale @leaderworkerset.x-k8s.io",
        # The credentials of triggers, which TriggerAuthentications name.
        "get configmaps,secrets",
        "create,get apiservices @apiregistration.k8s.io",
        f"patch,update apiservices @apiregistration.k8s.io ={METRICS_APIS}",
        # It owns the APIServices, so that they go with it.
        f"get clusterroles {_RBAC} =shoal-pod-autoscaling",
        *_running("operator.keda.sh", "keda-operator"),
    ),
    "driver-upgrades": (
        *FACTS,
        f"{READ} clusterpolicies,nvidiadrivers @nvidia.com",
        f"{READ} misplacedclusterpolicies @config.openshift.io",
        f"{READ} controllerrevisions @apps",
        # Cordons nodes, and writes the state of their upgrade.
        "patch nodes",
        "create pods/eviction",
        # The driver pod of a node, whose DaemonSet makes a new one.
        "delete pods",
    ),
    "node-scaling": (
        *FACTS,
        f"{READ} nodepools @karpenter.sh",
        "get,patch,update nodepools/status @karpenter.sh",
        f"create,delete,{READ},patch,update nodeclaims @karpenter.sh",
        "get,patch,update nodeclaims/status @karpenter.sh",
        # A pool owns its claims: some clusters guard who may keep an owner from going.
        "update nodepools/finalizers @karpenter.sh",
        # Capacity that is requested before there are pods.
        f"{READ} podtemplates,resourcequotas",
        f"{READ},patch provisioningrequests @autoscaling.x-k8s.io",
        f"{READ} capacitybuffers @autoscaling.x-k8s.io",
        "get,patch capacitybuffers/status,provisioningrequests/status @autoscaling.x-k8s.io",
        # Labels and taints of new nodes, the MIG layout of idle GPUs; the Node of an instance that is gone.
        "delete,patch nodes",
        # The pods of a node that is removed; those that are left when its time is over.
        "create pods/eviction",
        "delete pods",
        # Node scaling is left to these while they run.
        *_running("cluster-autoscaler,karpenter-leader-election", "cluster-autoscaler,karpenter"),
    ),
    "placeholder-pods": (
        *FACTS,
        f"{READ} nodeclaims,nodepools @karpenter.sh",
        # Nodes are requested while one of these runs.
        *_running("cluster-autoscaler,karpenter-leader-election", "cluster-autoscaler,karpenter"),
    ),
    "history": (
        f"{READ} namespaces,nodes,pods,resourcequotas",
        f"{READ} resourceclaims,resourceslices {_DRA}",
        # Which part of what pods hold is borrowed, and whose work was preempted.
        f"{READ} clusterqueues,workloads {_KUEUE}",
        f"{READ} podgroups,queues @scheduling.run.ai,scheduling.volcano.sh",
    ),
}
"""By part of `shoal run`, in the whole cluster."""

DRIVER_UPGRADES, HISTORY = "driver-upgrades", "history"
POD_AUTOSCALING = "pod-autoscaling"
NODE_SCALING = "node-scaling"
NAMED = ("operator", DRIVER_UPGRADES, POD_AUTOSCALING, NODE_SCALING, "placeholder-pods", HISTORY)
"""The parts that run only if they are named."""
BY_DEFAULT = tuple(name for name in PARTS if name not in NAMED)

WITH_CLOUD: dict[str, tuple[str, ...]] = {
    "cluster-api": ("get,list,patch machinedeployments,machinepools,machines @cluster.x-k8s.io",),
    # Its account of launches.
    "external-grpc": ("get,patch configmaps =shoal-external-grpc",),
    "aws": (),
}
"""What node scaling needs besides, by the cloud that it uses."""

_LOOK = "get,list"
OBSERVER = (
    *(line.replace(READ, _LOOK, 1) for line in FACTS),
    f"{_LOOK} limitranges,podtemplates,resourcequotas",
    f"{_LOOK} capacitybuffers,provisioningrequests @autoscaling.x-k8s.io",
    f"{_LOOK} runtimeclasses @node.k8s.io",
    f"{_LOOK} admissionchecks,clusterqueues,cohorts,localqueues,resourceflavors {_KUEUE}",
    f"{_LOOK} workloadpriorityclasses,workloads {_KUEUE}",
    f"{_LOOK} queues @scheduling.run.ai,scheduling.volcano.sh",
    f"{_LOOK} configs,schedulingshards @kai.scheduler",
    f"{_LOOK} nodeclaims,nodepools @karpenter.sh",
    f"{_LOOK} leaderworkersets @leaderworkerset.x-k8s.io",
    *(f"{_LOOK} {plurals} @{group}" for group, plurals in _JOB_KINDS),
    "get configmaps =kueue-manager-config,shoal-budgets",
    # By what settings Shoal decides, and whether Kueue runs.
    "get leases @coordination.k8s.io =c1f6bfd2.kueue.x-k8s.io,shoal",
)
"""Of `shoal observe`, in the whole cluster: no verb that writes, and no Secret."""

WEB = (*(line.replace(_LOOK, READ, 1) for line in OBSERVER if line.startswith(_LOOK)), f"{READ} events")
"""Of the web dashboard, in the whole cluster: it follows what it shows."""

EVERY_PART = (EVENTS,)

ELECTION = ("create leases @coordination.k8s.io", "get,update,watch leases @coordination.k8s.io =shoal")
"""In the lease's namespace: of several processes one works."""

BESIDE_LEASE: dict[str, tuple[str, ...]] = {
    "history": ("get,patch configmaps =shoal-budgets",),
}
"""By part, in the namespace of the lease."""

CONFIG_MAPS_BESIDE_LEASE: dict[str, tuple[str, ...]] = {"history": ("shoal-budgets",)}
"""By part, what is created with the roles, without content: a right to create cannot be limited to a name."""

IN_NAMESPACE: dict[str, tuple[str, ...]] = {
    "gatekeeper": ("create secrets", "get,update secrets =shoal-webhook-papers", "get services =shoal-webhook"),
    "pod-autoscaling": ("get services =shoal-metrics-apis",),
    # Pods that no scheduler places.
    "placeholder-pods": ("create,delete pods", "patch pods/status"),
    "operator": (
        f"create,delete,{READ},patch,update configmaps,serviceaccounts,services",
        f"create,delete,{READ},patch,update daemonsets @apps",
        f"create,delete,{READ},patch,update servicemonitors @monitoring.coreos.com",
        f"create,delete,{READ},patch,update rolebindings,roles {_RBAC}",
        # The level of pod security.
        "get,patch namespaces",
        # For the components.
        "create,patch,update pods",
    ),
}
"""By part, in the namespace of Shoal's own objects."""


def lines_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """What these need in the whole cluster, each line once."""
    return tuple(dict.fromkeys((*EVERY_PART, *(line for part in parts for line in PARTS[part]))))
